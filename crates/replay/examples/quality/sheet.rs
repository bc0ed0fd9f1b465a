//! Everything that was found, and how it is looked at.

use loadline_replay::compare::Row;
use loadline_replay::figures::Figures;
use loadline_replay::policy::Policy;
use loadline_replay::trace::built_in::Data;

/// Below this a share of time is taken to be this, so that ratios mean something: a minute and a half of a day.
pub const LEAST: f64 = 0.001;

/// What was found with one data set.
pub struct Sheet {
    pub data: Data,
    pub densities: [f64; 3],
    /// By density.
    pub rows: Vec<Vec<Row>>,
    /// On as few nodes as are enough.
    pub fewest: Vec<Row>,
}

pub struct Sheets {
    pub policies: Vec<Policy>,
    pub sparing: Vec<Policy>,
    pub all: Vec<Sheet>,
}

/// The logarithms of how a policy compares with another, one for each world that says something.
pub struct Logs(pub Vec<f64>);

impl Logs {
    /// The geometric mean; nothing where no world says anything.
    pub fn ratio(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| (self.0.iter().sum::<f64>() / self.0.len() as f64).exp())
    }

    pub fn worse(&self) -> usize {
        self.0.iter().filter(|log| **log > 0.0).count()
    }
}

fn of<'r>(rows: &'r [Row], policy: &str) -> impl Iterator<Item = &'r Figures> {
    let name = policy.to_owned();
    rows.iter().filter(move |row| row.policy.to_string() == name).filter_map(|row| row.figures.as_ref())
}

impl Sheet {
    /// Seed by seed, at one density.
    pub fn at(&self, density: usize, policy: &str) -> Vec<&Figures> {
        of(&self.rows[density], policy).collect()
    }

    /// All densities and seeds.
    pub fn figures(&self, policy: &str) -> Vec<&Figures> {
        self.rows.iter().flat_map(|rows| of(rows, policy)).collect()
    }

    /// Time over 100 %, beside another policy, in worlds in which that one was over 100 % for a while.
    pub fn beside(&self, policy: &str, base: &str) -> Logs {
        let pairs = self.figures(policy).into_iter().zip(self.figures(base));
        let pairs = pairs.filter(|(_, base)| base.over_full >= LEAST);
        Logs(pairs.map(|(mine, base)| (mine.over_full.max(LEAST) / base.over_full).ln()).collect())
    }

    /// The mean of a figure over densities and seeds.
    pub fn mean(&self, policy: &str, what: fn(&Figures) -> f64) -> f64 {
        let all = self.figures(policy);
        all.iter().map(|figures| what(figures)).sum::<f64>() / all.len().max(1) as f64
    }

    /// How many nodes are enough, on average; nothing where no number was.
    pub fn nodes(&self, policy: &str) -> Option<f64> {
        let all: Vec<&Figures> = of(&self.fewest, policy).collect();
        let rows = self.fewest.iter().filter(|row| row.policy.to_string() == policy).count();
        (rows == all.len() && rows > 0).then(|| all.iter().map(|f| f.nodes as f64).sum::<f64>() / rows as f64)
    }
}

impl Sheets {
    /// The sheet of a data set.
    pub fn of(&self, data: &str) -> Option<&Sheet> {
        self.all.iter().find(|sheet| sheet.data.name == data)
    }

    /// Over all data sets.
    pub fn beside(&self, policy: &str, base: &str) -> Logs {
        Logs(self.all.iter().flat_map(|sheet| sheet.beside(policy, base).0).collect())
    }
}
