//! Series that are always there. Origin and licences are in `scenarios/replay/README.md`.

use super::{Series, Unit, read};

/// What a machine whose use is told in percent is taken to have been given, in cores.
pub const CORES: f64 = 2.0;

/// A data set that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    bytes: &'static [u8],
    percent: bool,
}

/// All of them.
pub const ALL: [Data; 3] = [
    Data {
        name: "bitbrains",
        about: "106 enterprise machines, a week of 2013: bursty",
        bytes: include_bytes!("../../../../scenarios/replay/bitbrains_millicores.csv.gz"),
        percent: false,
    },
    Data {
        name: "google",
        about: "160 jobs, a day of 2011: steady",
        bytes: include_bytes!("../../../../scenarios/replay/google_percent.csv.gz"),
        percent: true,
    },
    Data {
        name: "planetlab",
        about: "150 machines, a day of 2011: low and noisy",
        bytes: include_bytes!("../../../../scenarios/replay/planetlab_percent.csv.gz"),
        percent: true,
    },
];

impl Data {
    /// The data set of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        ALL.into_iter().find(|data| data.name == name)
    }

    /// Its series. What is built in can be read; a test sees to that.
    #[must_use]
    pub fn series(&self) -> Vec<Series> {
        let unit = if self.percent { Unit::Percent(CORES) } else { Unit::Millicores };
        read(self.name, self.bytes, unit).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_is_whole() {
        for (name, rows, samples) in [("bitbrains", 106, 2016), ("google", 160, 288), ("planetlab", 150, 288)]
        {
            let series = Data::find(name).unwrap().series();
            assert_eq!(series.len(), rows, "{name}");
            assert!(series.iter().all(|one| one.milli.len() == samples), "{name}");
        }
        assert_eq!(Data::find("other"), None);
    }
}
