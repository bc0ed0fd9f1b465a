//! Files that are well known and are not series of workloads: told by their header what they are.

/// What a file with that first line is, and why it cannot be replayed.
pub(super) fn told(header: &str) -> Option<&'static str> {
    let cells: Vec<&str> = header.split(',').map(str::trim).collect();
    Some(match cells[..] {
        ["sn", "cpu_milli", "memory_mib", "gpu", "model"] => {
            "this is the list of nodes of openb-2023: it has machines, and nothing of what anybody used"
        }
        ["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", ..] => {
            "this is a list of pods of openb-2023: it has what they asked for, and nothing of what they used"
        }
        ["machine", "gpu_type", "cap_cpu", "cap_mem_gb", "cap_gpu"] => {
            "this is pai-machines-2020: it has machines, and nothing of what anybody used"
        }
        ["vm", "cores", "cpu_mhz", "mem_mib", ..] => {
            "this is the list of machines of bitbrains-rnd-2013: what they used is in cpu_millicores.csv.gz beside it"
        }
        ["cpu_util_percent", "mem_util_percent", ..] => {
            "this is cluster-series of Alibaba 2018: the use of a whole data centre, where a series for each workload is needed"
        }
        ["avg_cpu", "avg_mem", "avg_assigned_mem", ..] => {
            "this is cluster-series of Google 2019: the use of a whole data centre, where a series for each workload is needed"
        }
        ["timestamp", "cpu_usage", "assigned_mem"] => {
            "this is cluster-series of Azure 2019: the use of a whole data centre, where a series for each workload is needed"
        }
        _ => return None,
    })
}
