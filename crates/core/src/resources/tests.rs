use super::*;
use proptest::prelude::*;

fn list(pairs: &[(&str, &str)]) -> List {
    pairs.iter().map(|(n, q)| ((*n).to_owned(), q.parse().unwrap())).collect()
}

#[test]
fn lists_become_vectors_in_the_units_of_scheduling() {
    let mut names = Names::new();
    let got = names.amounts(&list(&[
        ("cpu", "1500u"),
        ("memory", "1.5Gi"),
        ("pods", "110"),
        ("example.com/gpu", "2"),
        ("hugepages-2Mi", "64Mi"),
        ("storage", "5Gi"),
    ]));
    let gpu = names.find("example.com/gpu").unwrap();
    assert_eq!(got.get(Resource::CPU), 2, "0.0015 cores round up to 2 thousandths");
    assert_eq!(got.get(Resource::MEMORY), 3 << 29);
    assert_eq!(got.get(Resource::PODS), 110);
    assert_eq!(got.get(gpu), 2);
    assert_eq!(names.find("storage"), None, "a volume's size is no node resource");
    assert_eq!(names.name(gpu), "example.com/gpu");
    let back = names.list(&got);
    assert_eq!(back["hugepages-2Mi"].to_string(), "64Mi");
    assert_eq!(back["cpu"].to_string(), "2m");
}

#[test]
fn only_names_that_scheduling_counts_get_an_index() {
    for (name, want) in [
        ("example.com/gpu", true),
        ("kubernetes.io/batch-cpu", true),
        ("hugepages-1Gi", true),
        ("attachable-volumes-csi-x", true),
        ("storage", false),
        ("requests.example.com/gpu", false),
        ("example.com/", false),
        ("Example.com/gpu", false),
        ("a/b/c", false),
        ("", false),
    ] {
        assert_eq!(is_extended(name), want, "{name}");
    }
}

#[test]
fn lacks_name_the_resource_and_zero_is_never_lacking() {
    let mut names = Names::new();
    let gpu = names.intern("example.com/gpu").unwrap();
    let free = Amounts::of(-100, 1024).with(Resource::PODS, 1);
    for (why, asked, want) in [
        ("nothing asked of an overcommitted node", Amounts::default(), vec![]),
        ("exactly what is free", Amounts::of(0, 1024).with(Resource::PODS, 1), vec![]),
        ("one byte more", Amounts::of(0, 1025), vec![(Resource::MEMORY, 1025, 1024)]),
        (
            "two lacks in index order",
            Amounts::of(1, 0).with(gpu, 1),
            vec![(Resource::CPU, 1, -100), (gpu, 1, 0)],
        ),
        ("less than nothing asked", Amounts::of(-5, 0), vec![]),
    ] {
        let got: Vec<_> = asked.lacking(&free).map(|l| (l.resource, l.asked, l.free)).collect();
        assert_eq!(got, want, "{why}");
        assert_eq!(asked.fits(&free), want.is_empty(), "{why}");
    }
}

#[test]
fn times_says_which_resource_ends_first() {
    let free = Amounts::of(1000, 1000).with(Resource::PODS, 3);
    for (why, asked, want) in [
        ("nothing asked", Amounts::default(), Times::Unlimited),
        ("1000 / 300 = 3", Amounts::of(300, 0), Times::Limited { count: 3, by: Resource::CPU }),
        ("cpu 10, memory 4", Amounts::of(100, 250), Times::Limited { count: 4, by: Resource::MEMORY }),
        ("a tie names the first", Amounts::of(500, 500), Times::Limited { count: 2, by: Resource::CPU }),
        (
            "the pod count ends it",
            Amounts::of(1, 1).with(Resource::PODS, 1),
            Times::Limited { count: 3, by: Resource::PODS },
        ),
    ] {
        assert_eq!(asked.times(&free), want, "{why}");
    }
    assert_eq!(Amounts::of(1, 0).times(&Amounts::of(-1, 0)), Times::Limited { count: 0, by: Resource::CPU });
    assert_eq!(Times::Unlimited.at_most(7), 7);
}

fn amounts(range: std::ops::Range<i64>) -> impl Strategy<Value = Amounts> {
    prop::collection::vec(range, 4..7).prop_map(|v| {
        let mut out = Amounts::default();
        for (amount, i) in v.into_iter().zip(0..) {
            out.set(Resource(i), amount);
        }
        out
    })
}

proptest! {
    #[test]
    fn times_is_how_often_it_can_be_taken(asked in amounts(0..40), free in amounts(-10..200)) {
        let (mut left, mut count) = (free.clone(), 0);
        while count < 1000 && asked.fits(&left) {
            left.sub(&asked);
            count += 1;
        }
        prop_assert_eq!(asked.times(&free).at_most(1000), count);
    }

    #[test]
    fn fitting_is_less_or_equal_wherever_something_is_asked(asked in amounts(-3..9), free in amounts(-3..9)) {
        let slow = (0..8).map(Resource).all(|r| asked.get(r) <= 0 || asked.get(r) <= free.get(r));
        prop_assert_eq!(asked.fits(&free), slow);
    }

    #[test]
    fn adding_and_taking_away_cancel(a in amounts(-99..99), b in amounts(-99..99)) {
        let mut sum = a.clone();
        sum.add(&b);
        prop_assert_eq!(&sum.minus(&b), &a);
        let mut most = a.clone();
        most.max(&b);
        for r in (0..8).map(Resource) {
            prop_assert_eq!(sum.get(r), a.get(r) + b.get(r));
            prop_assert_eq!(most.get(r), a.get(r).max(b.get(r)));
        }
    }
}
