use super::*;

#[test]
fn what_is_asked_for_can_be_narrowed() {
    assert_eq!(
        Options::usual_query(&["cluster=\"a\"".to_owned()]),
        "sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{container!=\"\",container!=\"POD\",cluster=\"a\"}[5m]))"
    );
}

#[test]
fn cores_become_thousandths_and_what_cannot_be_cores_is_nothing() {
    for (cores, want) in
        [(0.0, Some(0)), (0.0004, Some(0)), (0.0006, Some(1)), (2.5, Some(2500)), (-0.1, None), (1e9, None)]
    {
        assert_eq!(milli(cores), want, "{cores}");
    }
}
