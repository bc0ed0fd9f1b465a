//! What happens in a world: how many candidates, on which machines, and what goes wrong when.

use loadline_core::lease::Settings;
use proptest::prelude::*;
use std::time::Duration;

/// Microseconds of the true time, which no candidate knows.
pub type Micros = u64;

pub const SECOND: Micros = 1_000_000;

/// How long things go wrong.
pub const ROUGH: Micros = 120 * SECOND;

/// The longest a message is on its way while things go wrong.
pub const SLOWEST: Micros = 20 * SECOND;

/// By how many millionths a clock may run fast or slow.
pub const DRIFT: i64 = 50_000;

#[derive(Clone, Debug)]
pub struct Plan {
    pub machines: Vec<Machine>,
    pub faults: Vec<Fault>,
    pub network: Network,
    pub identities: Identities,
    /// Of delays, losses and pauses.
    pub seed: u64,
}

/// Where a candidate runs, and how it is set.
#[derive(Clone, Debug)]
pub struct Machine {
    pub settings: Settings,
    pub starts: Micros,
    /// Millionths by which the clock that never goes back is fast.
    pub monotonic_drift: i64,
    pub wall_drift: i64,
    /// Seconds by which the wall clock is ahead.
    pub wall_skew: i64,
}

#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub at: Micros,
    /// On which machine.
    pub machine: usize,
    /// On the machine of whoever leads then, if anybody does.
    pub leader: bool,
    pub what: What,
}

#[derive(Clone, Copy, Debug)]
pub enum What {
    /// Neither requests nor answers get through.
    Partition(Micros),
    /// Requests get through, answers do not.
    Deaf(Micros),
    /// The process stands still, the clocks go on.
    Stop(Micros),
    /// The machine stands still, and with it the monotonic clock.
    Suspend(Micros),
    /// The wall clock jumps by so many seconds.
    WallStep(i64),
    /// The process is gone, and another comes after a while.
    Crash(Micros),
    /// The process lets go of the lease and ends, and another comes after a while.
    Exit(Micros),
    /// Somebody labels the Lease: another revision, the same record.
    Label,
}

/// Percentages, while things go wrong.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    pub lost: u64,
    pub slow: u64,
    pub twice: u64,
}

/// How candidates are called. Nobody should have to be careful with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identities {
    /// As client-go does it: another with each start.
    Unique,
    /// The machine's name.
    PerMachine,
    /// A mistake.
    AllTheSame,
}

fn settings() -> impl Strategy<Value = Settings> {
    let drawn = (3..=20_u64, 35..=70_u64, 10..=66_u64).prop_map(|(lease, renew, retry)| {
        let renew = lease * 10 * renew;
        let retry = (renew * retry / 100).max(100);
        Settings {
            lease_duration: Duration::from_secs(lease),
            renew_deadline: Duration::from_millis(renew),
            retry_period: Duration::from_millis(retry),
        }
    });
    prop_oneof![2 => Just(Settings::default()), 1 => drawn]
}

fn machine(same: Option<Settings>) -> impl Strategy<Value = Machine> {
    let drift = || prop_oneof![Just(0), Just(DRIFT), Just(-DRIFT), -DRIFT..=DRIFT];
    let settings = same.map_or_else(|| settings().boxed(), |same| Just(same).boxed());
    (settings, 0..30 * SECOND, drift(), drift(), -100_000..100_000_i64).prop_map(
        |(settings, starts, monotonic_drift, wall_drift, wall_skew)| Machine {
            settings,
            starts,
            monotonic_drift,
            wall_drift,
            wall_skew,
        },
    )
}

fn fault(machines: usize) -> impl Strategy<Value = Fault> {
    let span = || prop_oneof![0..5 * SECOND, 0..40 * SECOND];
    let what = prop_oneof![
        3 => span().prop_map(What::Partition),
        2 => span().prop_map(What::Deaf),
        3 => span().prop_map(What::Stop),
        2 => span().prop_map(What::Suspend),
        1 => (-60..60_i64).prop_map(What::WallStep),
        2 => span().prop_map(What::Crash),
        2 => span().prop_map(What::Exit),
        1 => Just(What::Label),
    ];
    (0..ROUGH, 0..machines, any::<bool>(), what).prop_map(|(at, machine, leader, what)| Fault {
        at,
        machine,
        leader,
        what,
    })
}

/// A machine that was suspended and had its clock set back cannot know how long it was away; that much is not promised.
/// Each world has only one of the two.
fn keep_promises_possible(mut faults: Vec<Fault>, seed: u64) -> Vec<Fault> {
    let suspends = seed.is_multiple_of(2);
    faults.retain(|fault| match fault.what {
        What::Suspend(_) => suspends,
        What::WallStep(_) => !suspends,
        _ => true,
    });
    faults
}

pub fn plan() -> impl Strategy<Value = Plan> {
    let network = prop_oneof![
        Just(Network { lost: 0, slow: 0, twice: 0 }),
        (0..30_u64, 0..30_u64, 0..30_u64).prop_map(|(lost, slow, twice)| Network { lost, slow, twice }),
    ];
    let identities = prop_oneof![
        3 => Just(Identities::Unique),
        1 => Just(Identities::PerMachine),
        1 => Just(Identities::AllTheSame),
    ];
    let same = prop::option::weighted(0.7, settings());
    (1..=5_usize, network, identities, any::<u64>(), same).prop_flat_map(
        |(count, network, identities, seed, same)| {
            let machines = prop::collection::vec(machine(same), count);
            let faults = prop::collection::vec(fault(count), 0..20);
            (machines, faults).prop_map(move |(machines, faults)| Plan {
                machines,
                faults: keep_promises_possible(faults, seed),
                network,
                identities,
                seed,
            })
        },
    )
}
