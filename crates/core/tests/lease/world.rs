//! Candidates, a network and a server, event by event in true time.

use crate::clock::Clocks;
use crate::flaw::Flaw;
use crate::judge::{Broken, Judge, Writer};
use crate::plan::{Identities, Micros, Plan, ROUGH, SECOND, SLOWEST, What};
use crate::store::{Call, Outcome, Process, Store};
use loadline_core::lease::{Elector, Loss, Reading, Request, Right, Settings, Step};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// How often the judge looks if nothing happens.
const TICK: Micros = SECOND / 5;

/// How long a message takes when all is well.
const FAST: Micros = SECOND / 20;

#[derive(Clone, Debug)]
enum Event {
    Start(usize),
    Timer(usize, u64),
    /// A copy of a request reaches the server.
    Arrives(usize),
    Answered(usize, Outcome),
    Fault(usize),
    Continue(usize, What),
    /// Everything is well from now on.
    Calm,
    Tick,
}

/// What a process waits for.
#[derive(Clone, Copy, Debug)]
enum Waits {
    /// A time of its clock.
    Until(Duration),
    /// An answer to this call, or a time of its clock.
    Answer(usize, Duration),
}

/// One process on a machine.
#[derive(Debug)]
struct Program {
    process: Process,
    elector: Elector,
    waits: Waits,
    /// The answer that came while the process stood still.
    unread: Option<Outcome>,
    /// A right once found ended is not asked again.
    ended: Option<Right>,
    /// The right it had when it began to let go.
    before_release: Option<Right>,
    /// When an answer last came well.
    answered: Option<Duration>,
    /// When it last asked.
    asked: Reading,
    /// While it lets go: when another is to come after it.
    exits: Option<Micros>,
    started: Micros,
    requests: u64,
    halts: u64,
}

#[derive(Debug)]
struct Site {
    settings: Settings,
    clocks: Clocks,
    program: Option<Program>,
    /// How many faults keep it still.
    halted: u32,
    suspended: u32,
    cut_until: Micros,
    deaf_until: Micros,
    /// Timers set before the last change do not count.
    timer: u64,
}

pub struct World<'a> {
    plan: &'a Plan,
    flaw: Flaw,
    sites: Vec<Site>,
    store: Store,
    calls: Vec<Call>,
    events: BinaryHeap<Reverse<(Micros, u64)>>,
    bodies: Vec<Option<Event>>,
    judge: Judge,
    losses: Vec<Loss>,
    dice: u64,
    started: Process,
}

/// What became of a world.
#[derive(Debug)]
pub struct Report {
    pub broken: Vec<(Broken, String)>,
    /// Why leaders were none any more.
    pub losses: Vec<Loss>,
    /// How often a process wrote the record after another.
    pub changes: usize,
}

/// Runs a plan to its end.
pub fn run(plan: &Plan, flaw: Flaw) -> Report {
    let mut world = World::new(plan, flaw);
    while let Some(Reverse((at, body))) = world.events.pop() {
        let Some(event) = world.bodies[usize::try_from(body).unwrap()].take() else { continue };
        if at > world.judge.end() {
            break;
        }
        world.happens(event, at);
        let writers: Vec<Writer> = (0..world.sites.len()).filter_map(|site| world.writer(site, at)).collect();
        world.judge.look(at, &writers, &world.store.history);
    }
    let end = world.judge.end();
    for site in 0..world.sites.len() {
        world.ends(site, end);
    }
    let changes = world.store.history.windows(2).filter(|two| two[0].process != two[1].process).count();
    Report { broken: world.judge.broken, losses: world.losses, changes }
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan, flaw: Flaw) -> Self {
        let sites = plan.machines.iter().map(|machine| Site {
            settings: machine.settings,
            clocks: Clocks::new(machine, flaw),
            program: None,
            halted: 0,
            suspended: 0,
            cut_until: 0,
            deaf_until: 0,
            timer: 0,
        });
        let mut world = Self {
            plan,
            flaw,
            sites: sites.collect(),
            store: Store::new(flaw),
            calls: Vec::new(),
            events: BinaryHeap::new(),
            bodies: Vec::new(),
            judge: Judge::new(plan.machines.iter().map(|machine| &machine.settings)),
            losses: Vec::new(),
            dice: plan.seed,
            started: 0,
        };
        for (index, machine) in plan.machines.iter().enumerate() {
            world.at(machine.starts, Event::Start(index));
        }
        for (index, fault) in plan.faults.iter().enumerate() {
            world.at(fault.at, Event::Fault(index));
        }
        world.at(ROUGH, Event::Calm);
        world.at(0, Event::Tick);
        world
    }

    fn at(&mut self, at: Micros, event: Event) {
        // What happens at one time happens in the order in which it was caused.
        self.events.push(Reverse((at, self.bodies.len() as u64)));
        self.bodies.push(Some(event));
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % below.max(1)
    }

    fn happens(&mut self, event: Event, at: Micros) {
        match event {
            Event::Start(site) => self.start(site, at),
            Event::Timer(site, timer) if self.sites[site].timer == timer => self.wakes(site, at),
            Event::Timer(..) => {}
            Event::Arrives(call) => self.arrives(call, at),
            Event::Answered(call, outcome) => self.answered(call, outcome, at),
            Event::Fault(index) => {
                let fault = self.plan.faults[index];
                let leader =
                    (0..self.sites.len()).find(|site| fault.leader && self.writer(*site, at).is_some());
                self.goes_wrong(leader.unwrap_or(fault.machine), fault.what, at);
            }
            Event::Continue(site, what) => self.continues(site, what, at),
            Event::Calm => {
                for site in 0..self.sites.len() {
                    let site = &mut self.sites[site];
                    (site.cut_until, site.deaf_until) = (at, at);
                }
            }
            Event::Tick => self.at(at + TICK, Event::Tick),
        }
    }

    fn start(&mut self, site: usize, at: Micros) {
        if self.sites[site].program.is_some() {
            return;
        }
        if self.sites[site].halted > 0 {
            return self.at(at + SECOND, Event::Start(site));
        }
        let process = self.started;
        self.started += 1;
        let identity = match self.plan.identities {
            Identities::Unique => format!("{site}_{process}"),
            Identities::PerMachine => site.to_string(),
            Identities::AllTheSame => "all".to_owned(),
        };
        let seed = self.draw(u64::MAX);
        let settings = self.sites[site].settings;
        self.sites[site].program = Some(Program {
            process,
            elector: Elector::new(settings, identity, seed),
            waits: Waits::Until(Duration::ZERO),
            unread: None,
            ended: None,
            before_release: None,
            answered: None,
            asked: self.sites[site].clocks.now(at),
            exits: None,
            started: at,
            requests: 0,
            halts: 0,
        });
        self.drive(site, at);
    }

    /// Does what the elector says until there is something to wait for.
    fn drive(&mut self, site: usize, at: Micros) {
        loop {
            let flaw = self.flaw;
            let Site { clocks, program, settings, .. } = &mut self.sites[site];
            let Some(program) = program else { return };
            let now = clocks.now(at);
            match program.elector.step(now) {
                Step::Lost(loss) => {
                    program.answered = None;
                    self.losses.push(loss);
                }
                Step::Wait(_) if flaw == Flaw::Restless => {
                    program.elector = Elector::new(*settings, "restless", 0);
                }
                Step::Wait(until) => {
                    let sleeps = flaw == Flaw::Sleepy && program.elector.right().is_some();
                    let until = if sleeps { until + 2 * settings.lease_duration } else { until };
                    program.waits = Waits::Until(until);
                    return self.set_timer(site, at);
                }
                Step::Send(request, by) => {
                    program.requests += 1;
                    program.asked = now;
                    program.waits = Waits::Answer(self.calls.len(), by);
                    let process = program.process;
                    self.send(Call { process, machine: site, request: flaw.sends(request), sent: at }, at);
                    return self.set_timer(site, at);
                }
                Step::Done => {
                    let again = program.exits.unwrap_or(at).max(at);
                    self.ends(site, at);
                    return self.at(again, Event::Start(site));
                }
            }
        }
    }

    fn ends(&mut self, site: usize, at: Micros) {
        let site = &mut self.sites[site];
        if let Some(program) = site.program.take() {
            self.judge.count(&site.settings, at - program.started, program.requests, program.halts);
        }
    }

    fn set_timer(&mut self, site: usize, at: Micros) {
        let place = &mut self.sites[site];
        place.timer += 1;
        let Some(program) = place.program.as_ref().filter(|_| place.halted == 0) else { return };
        let (Waits::Until(until) | Waits::Answer(_, until)) = program.waits;
        let (when, timer) = (place.clocks.when(until), place.timer);
        self.at(when.max(at), Event::Timer(site, timer));
    }

    /// Its time has come.
    fn wakes(&mut self, site: usize, at: Micros) {
        let flaw = self.flaw;
        let Site { clocks, program, .. } = &mut self.sites[site];
        let Some(program) = program else { return };
        let now = clocks.now(at);
        if let Waits::Answer(call, _) = program.waits {
            flaw.gives_up(&mut program.elector, &self.calls[call].request, now);
            program.waits = Waits::Until(Duration::ZERO);
        }
        self.drive(site, at);
    }

    fn send(&mut self, call: Call, at: Micros) {
        let copies = if at < ROUGH && self.draw(100) < self.plan.network.twice { 2 } else { 1 };
        let index = self.calls.len();
        let machine = call.machine;
        self.calls.push(call);
        for _ in 0..copies {
            if let Some(when) = self.travels(at, self.sites[machine].cut_until) {
                self.at(when, Event::Arrives(index));
            }
        }
    }

    /// When a message arrives, if it does.
    fn travels(&mut self, at: Micros, cut_until: Micros) -> Option<Micros> {
        let rough = at < ROUGH;
        let (lost, slow) = (self.draw(100), self.draw(100));
        if at < cut_until || (rough && lost < self.plan.network.lost) {
            return None;
        }
        let slowest = if rough && slow < self.plan.network.slow { SLOWEST } else { FAST };
        Some(at + 1 + self.draw(slowest))
    }

    fn arrives(&mut self, index: usize, at: Micros) {
        let call = &self.calls[index];
        let machine = call.machine;
        if at < self.sites[machine].cut_until {
            return;
        }
        let outcome = self.store.handle(call, at);
        let cut = self.sites[machine].cut_until.max(self.sites[machine].deaf_until);
        if let Some(when) = self.travels(at, cut) {
            self.at(when, Event::Answered(index, outcome));
        }
    }

    fn answered(&mut self, index: usize, outcome: Outcome, at: Micros) {
        let machine = self.calls[index].machine;
        let Site { program, halted, cut_until, deaf_until, .. } = &mut self.sites[machine];
        if at < *cut_until || at < *deaf_until {
            return;
        }
        let Some(program) = program else { return };
        match program.waits {
            Waits::Answer(waited, _) if waited == index && program.unread.is_none() => {
                program.unread = Some(outcome);
                if *halted == 0 {
                    self.reads(machine, at);
                }
            }
            // Given up, of a process that is no more, or the second of two.
            _ => {}
        }
    }

    /// Takes the answer that is there.
    fn reads(&mut self, site: usize, at: Micros) {
        let flaw = self.flaw;
        let Site { clocks, program, settings, .. } = &mut self.sites[site];
        let Some(program) = program else { return };
        let Some(outcome) = program.unread.take() else { return };
        let Waits::Answer(call, _) = program.waits else { return };
        let now = clocks.now(at);
        match outcome {
            Outcome::Found(found) => {
                let ours = found.as_ref().is_some_and(|_| program.elector.right().is_some());
                let now = if flaw == Flaw::SeenWhenAsked { program.asked } else { now };
                program.elector.observe(flaw.sees(found, now, *settings), now);
                if ours && program.elector.right().is_none() {
                    program.answered = None;
                }
            }
            Outcome::Written(revision) => {
                let releases = matches!(self.calls[call].request, Request::Release(..));
                program.answered = (!releases).then_some(now.monotonic);
                program.elector.confirm(revision, now);
            }
            Outcome::Refused => program.elector.fail(now),
        }
        program.waits = Waits::Until(Duration::ZERO);
        self.drive(site, at);
    }

    fn goes_wrong(&mut self, site: usize, what: What, at: Micros) {
        let place = &mut self.sites[site];
        match what {
            What::Partition(span) => place.cut_until = place.cut_until.max(at + span),
            What::Deaf(span) => place.deaf_until = place.deaf_until.max(at + span),
            What::Stop(span) | What::Suspend(span) => {
                place.halted += 1;
                if matches!(what, What::Suspend(_)) {
                    place.suspended += 1;
                    place.clocks.suspend(at);
                }
                if let Some(program) = &mut place.program {
                    program.halts += 1;
                }
                self.set_timer(site, at);
                self.at((at + span).min(ROUGH), Event::Continue(site, what));
            }
            What::WallStep(seconds) => place.clocks.step_wall(seconds),
            What::Crash(span) => {
                self.ends(site, at);
                self.at((at + span).min(ROUGH), Event::Start(site));
            }
            What::Exit(span) => {
                let now = place.clocks.now(at);
                let halted = place.halted > 0;
                if let Some(program) =
                    place.program.as_mut().filter(|program| !halted && program.exits.is_none())
                {
                    program.exits = Some((at + span).min(ROUGH));
                    program.before_release = program.elector.right();
                    program.unread = None;
                    program.elector.release(now);
                    self.drive(site, at);
                }
            }
            What::Label => self.store.label(),
        }
    }

    fn continues(&mut self, site: usize, what: What, at: Micros) {
        let place = &mut self.sites[site];
        place.halted -= 1;
        if matches!(what, What::Suspend(_)) {
            place.suspended -= 1;
            if place.suspended == 0 {
                place.clocks.resume(at);
            }
        }
        if place.halted > 0 {
            return;
        }
        let unread = place.program.as_ref().is_some_and(|program| program.unread.is_some());
        // An answer that waits and a timer that is over: either may be seen first.
        if unread && self.draw(2) == 0 {
            self.reads(site, at);
        } else {
            if let Some(program) = &mut self.sites[site].program {
                program.unread = None;
            }
            self.set_timer(site, at);
        }
    }

    /// Says a process that it may write? It is asked even while it stands still: somebody may have asked just before.
    fn writer(&mut self, site: usize, at: Micros) -> Option<Writer> {
        let Site { clocks, program, settings, .. } = &mut self.sites[site];
        let program = program.as_mut()?;
        let now = clocks.now(at);
        let right = match self.flaw {
            Flaw::WritesWhileReleasing if program.exits.is_some() => program.before_release,
            _ => program.elector.right(),
        };
        let may_write = match (self.flaw, program.answered) {
            (Flaw::RightFromAnswer, answered) => {
                answered.is_some_and(|answered| now.monotonic < answered + settings.renew_deadline)
            }
            _ => right.is_some_and(|right| program.ended != Some(right) && right.holds(now)),
        };
        if !may_write {
            program.ended = right;
        }
        may_write.then_some(Writer { process: program.process, settings: *settings })
    }
}
