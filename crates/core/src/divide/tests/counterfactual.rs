//! What would have to be different, applied to the fleet itself.

use super::*;
use crate::select::taint::Effect;
use proptest::prelude::*;

fn tainted(mut member: Member) -> Member {
    let (key, effect) = ("maintenance".to_owned(), Effect::NoSchedule);
    member.taints = vec![Taint { key, value: String::new(), effect, time_added: None }];
    member
}

fn told(members: &[Member], binding: &Binding) -> Vec<String> {
    let given = Given::default();
    let answer = divide(members, binding, &given);
    counterfactuals(members, binding, &given, &answer).iter().map(ToString::to_string).collect()
}

#[test]
fn a_taint_that_is_not_tolerated_and_room_that_is_missing_are_told_with_what_they_would_change() {
    // By free cores, 10 and 10: 4 replicas are 2 and 2.
    let [a, b] = [member("a", &[("cpu", "10")]), tainted(member("b", &[("cpu", "10")]))];
    assert_eq!(
        told(&[a.clone(), b.clone()], &cores(4, dynamic())),
        ["b would get 2 if the taint {maintenance:NoSchedule} were tolerated"]
    );
    // 3 + 2 of 8: three are missing, whoever has them.
    assert_eq!(
        told(&fleet(&[("a", 3), ("b", 2)]), &cores(8, dynamic())),
        ["a would get 6 if it had room for 3 more", "b would get 5 if it had room for 3 more"]
    );
    // 10 of 25 fit, and with the other cluster 20.
    assert_eq!(
        told(&[a.clone(), b], &cores(25, dynamic())),
        ["a would get 25 if it had room for 15 more"],
        "10 more of a cluster that is closed leave five over, and nothing is decided"
    );
    assert_eq!(told(&[a], &cores(4, dynamic())), Vec::<String>::new(), "all is well");
}

#[test]
fn only_so_many_clusters_are_tried_whether_that_helps_or_not() {
    let full = |number: usize| tainted(member(&format!("c{number:03}"), &[("cpu", "0")]));
    for (before, found) in [(10, true), (1000, false)] {
        let mut members: Vec<Member> = (0..before).map(full).collect();
        members.push(tainted(member("z", &[("cpu", "10")])));
        let all = told(&members, &cores(4, dynamic()));
        let expected = "z would get 4 if the taint {maintenance:NoSchedule} were tolerated";
        assert_eq!(all.contains(&expected.to_owned()), found, "after {before}: {all:?}");
    }
}

proptest! {
    #[test]
    fn whatever_is_told_is_so_once_it_is_done(
        free in prop::collection::vec((0_i64..12, any::<bool>()), 1..6),
        replicas in 1_i32..40,
        aggregated in any::<bool>(),
    ) {
        let build = |free: &[(i64, bool)]| -> Vec<Member> {
            let one = |(number, (cores, closed)): (usize, &(i64, bool))| {
                let member = member(&format!("c{number}"), &[("cpu", &cores.to_string())]);
                if *closed { tainted(member) } else { member }
            };
            free.iter().enumerate().map(one).collect()
        };
        let division = if aggregated { Division::Aggregated } else { dynamic() };
        let (binding, given) = (cores(replicas, division), Given::default());
        let members = build(&free);
        let answer = divide(&members, &binding, &given);
        for one in counterfactuals(&members, &binding, &given, &answer) {
            let mut changed = free.clone();
            let place: usize = one.cluster[1..].parse().expect("a number");
            match &one.change {
                Change::Tolerated(_) => changed[place].1 = false,
                Change::Room(more) => changed[place].0 += more,
            }
            let then = divide(&build(&changed), &binding, &given);
            let gets = then.clusters.iter().find(|target| *target.name == *one.cluster);
            prop_assert_eq!(gets.map(|target| target.replicas), Some(one.gets), "{}", one);
            prop_assert_eq!(then.failure.is_none() && then.shortfall == 0, one.settles, "{}", one);
        }
    }
}
