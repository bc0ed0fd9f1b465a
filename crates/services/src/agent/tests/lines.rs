//! Rules below the targets of the scheduler.

use super::*;
use loadline_core::load::Both;
use loadline_core::load::policy::{Policy as LoadPolicy, Rules};
use loadline_core::load::ratio::Ratio;
use loadline_core::load::settings::Settings;

#[tokio::test]
async fn a_rule_below_the_schedulers_target_is_told_once() {
    let mut stage = Stage::new().await;
    let target = Some(Ratio::from_nano(800_000_000));
    let settings = Settings { targets: Both { cpu: target, memory: None }, ..Settings::default() };
    let targets = Rules::new(LoadPolicy::default(), settings).expect("well-formed").0;
    stage.agent.agreement = Agreement::new(Some(targets));
    assert!(stage.cycle().await.is_empty(), "there are no rules");
    stage.ask_for(rules()).await;
    // Lines at 70 % and 85 %, a target of 0.8, 10 CPUs that are all for pods.
    let told = stage.cycle().await;
    let text = "pods come until 8 of cpu are used (target 0.8), but rule overload/busy acts above 7 (70%): 1 too many";
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(text), "{told:?}");
    assert_eq!(stage.agent.metrics.lines_disagree.get(), 1);
    assert!(stage.cycle().await.is_empty(), "told once");
    stage.told(&[("Node", "LinesDisagree")]).await;

    stage.agent.agreement = Agreement::new(None);
    assert!(stage.cycle().await.is_empty(), "nobody says what the scheduler goes by");
    assert_eq!(stage.agent.metrics.lines_disagree.get(), 0);
}
