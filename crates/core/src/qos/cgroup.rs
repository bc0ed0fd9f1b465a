//! Where is a pod in the cgroup tree, and what do the files there say?
//!
//! Two versions of cgroups and two ways kubelets name folders in them make four trees that look different and mean the same.
//! Nobody is asked which one a node has: [`Layout::candidates`] says what is worth trying, and the one whose folder is there is it.

mod figure;
mod layout;

pub use figure::{
    Quota, Throttling, cpu_rate, cpu_usage_ns, quota, quota_text, reclaimable, run_queue_wait_ns, shares,
    shares_of, throttled, throttled_rate, unreclaimable, wait_rate, weight_of, working_set,
};
pub use layout::{Driver, Figure, Layout, Pressure, Version, bare_id, folder_uid};

#[cfg(test)]
mod tests;
