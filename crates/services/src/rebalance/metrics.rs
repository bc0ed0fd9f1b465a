//! What is counted?

use crate::ctx::Ctx;
use loadline_core::load::{Load, Metered};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use std::sync::atomic::AtomicU64;

/// Of which resource there was too much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Because {
    pub resource: &'static str,
}

impl Because {
    pub(super) fn of(resource: Metered) -> Self {
        Self { resource: resource.name() }
    }
}

/// What came of it so far.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Plans made.
    pub plans: Counter,
    /// Pods that went.
    pub moves: Family<Because, Counter>,
    /// Pods the API server did not let go.
    pub refused: Counter,
    /// Requests that failed otherwise.
    pub failures: Counter,
    /// Nodes over their line.
    pub over: Gauge,
    /// Moves of the last plan.
    pub planned: Gauge,
    /// What moves that were measured had been expected to take off nodes, and what they took off.
    pub predicted: Family<Because, Gauge<f64, AtomicU64>>,
    pub measured: Family<Because, Gauge<f64, AtomicU64>>,
}

impl Metrics {
    pub(super) fn register(&self, ctx: &Ctx) {
        ctx.metrics.register(|registry| {
            let mut own = registry.below("loadline_rebalance");
            own.register("plans", "Plans made, one after every measurement", self.plans.clone());
            own.register("moves", "Pods evicted, by what there was too much of", self.moves.clone());
            own.register("refused", "Pods a disruption budget kept from going", self.refused.clone());
            own.register("failures", "Writes that failed otherwise", self.failures.clone());
            own.register("nodes_over_line", "Nodes over their line, for however long", self.over.clone());
            own.register("planned_moves", "Moves of the last plan", self.planned.clone());
            own.register(
                "relief_predicted",
                "What measured moves were expected to take off nodes, in cores or bytes",
                self.predicted.clone(),
            );
            own.register(
                "relief_measured",
                "What they took off; less means others grew",
                self.measured.clone(),
            );
        });
    }

    /// What was expected to go from a node, and what went.
    pub(super) fn relief(&self, predicted: Load, measured: Load) {
        for resource in Metered::ALL {
            let of = Because::of(resource);
            self.predicted.get_or_create(&of).inc_by(units(resource, predicted.get(resource)));
            self.measured.get_or_create(&of).inc_by(units(resource, measured.get(resource)));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown to people")]
fn units(resource: Metered, amount: i64) -> f64 {
    match resource {
        Metered::Cpu => amount as f64 / 1e9,
        Metered::Memory => amount as f64,
    }
}
