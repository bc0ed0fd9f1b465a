use super::*;
use std::io::Write;

fn told(text: &str, unit: Unit) -> Vec<String> {
    read("f", text.as_bytes(), unit).unwrap_err().iter().map(ToString::to_string).collect()
}

fn series(text: &str, unit: Unit) -> Vec<(String, Vec<u32>)> {
    let all = read("f", text.as_bytes(), unit).unwrap();
    all.into_iter().map(|one| (one.name.to_string(), one.milli)).collect()
}

#[test]
fn rows_and_samples_are_read_in_any_unit() {
    let expected = vec![("a".to_owned(), vec![250, 500]), ("b".to_owned(), vec![1000, 0])];
    for (text, unit, why) in [
        ("a,250,500\nb,1000,0\n", Unit::Millicores, "as it is"),
        ("a,0.25,0.5\n\nb,1,0", Unit::Cores, "cores × 1000, blank lines skipped"),
        ("a,12.5,25\nb,50,0", Unit::Percent(2.0), "12.5 % of 2 cores are 250m"),
        (
            "time,name,cpu\n0,a,250\n1,b,1000\n300,a,500\n1970-01-01T00:05:30Z,b,0",
            Unit::Millicores,
            "a sample a line, times in any form",
        ),
    ] {
        assert_eq!(series(text, unit), expected, "{why}");
    }
}

/// Two days of samples: one at ten in the morning, else nothing.
fn peaking(name: &str, from: i64) -> String {
    let busy = |step: i64| step.rem_euclid(288) == 120;
    let line = |step: i64| format!("{},{name},{}\n", step * 300, if busy(step) { 900 } else { 100 });
    (from..from + 576).map(line).collect()
}

#[test]
fn series_that_begin_at_different_times_peak_at_the_same_hour_where_they_did() {
    // b begins six hours later, c more than two days.
    let text = format!("time,name,cpu\n{}{}{}", peaking("a", 0), peaking("b", 72), peaking("c", 600));
    for (name, milli) in series(&text, Unit::Millicores) {
        let peaks: Vec<usize> = (0..milli.len()).filter(|at| milli[*at] == 900).collect();
        assert_eq!(peaks, [120, 408], "{name}");
    }
}

#[test]
fn what_is_compressed_is_read_as_well() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"a,1,2").unwrap();
    let all = read("f", &packed.finish().unwrap(), Unit::Millicores).unwrap();
    assert_eq!(all[0].milli, [1, 2]);
    let cut = read("f", &[0x1f, 0x8b, 8], Unit::Millicores).unwrap_err();
    assert!(cut[0].to_string().starts_with("f: cannot be read: "), "{}", cut[0]);
}

#[test]
fn a_short_hole_is_bridged_on_the_line_between() {
    let text = "time,name,cpu\n0,a,100\n900,a,400";
    assert_eq!(series(text, Unit::Millicores), [("a".to_owned(), vec![100, 200, 300, 400])]);
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let rows = "a,1,2\nb,1\na,3,4\nc,1,\nd,1,x\ne,-1,2\nf\ng,NaN,1\n";
    assert_eq!(
        told(rows, Unit::Millicores),
        [
            "f:2: \"b\" has 1 samples, expected 2 as before",
            "f:3: \"a\" is there twice: first in line 1",
            "f:4: \"c\", sample 2: nothing: a hole",
            "f:5: \"d\", sample 2: \"x\" is not a number",
            "f:6: \"e\", sample 1: -1 cannot be an amount of CPU",
            "f:7: \"f\" has no samples",
            "f:8: \"g\", sample 1: NaN cannot be an amount of CPU",
        ]
    );
    let samples = "time,name,cpu\n600,a,1\n300,a,1\n600,a,1\n9000,a,1\nnoon,a,1\n1,a\n9300,a,much\n";
    assert_eq!(
        told(samples, Unit::Millicores),
        [
            "f:3: \"a\": time goes back",
            "f:4: \"a\": a second sample of the same five minutes",
            "f:5: \"a\": a hole of 27 samples, at most 3 are bridged",
            "f:6: \"noon\" is not a time: expected seconds or RFC 3339",
            "f:7: 2 columns, expected time,name,cpu",
            "f:8: \"a\": \"much\" is not a number",
        ]
    );
}

#[test]
fn a_unit_that_cannot_be_is_refused() {
    assert_eq!(
        told("a,12,1800", Unit::Percent(1.0)),
        ["f:1: \"a\", sample 2: 1800 is more than 100 %: is it in millicores?"]
    );
    assert_eq!(
        told("a,250000,1", Unit::Cores),
        ["f:1: \"a\", sample 1: 250000 is more than 100000 cores: is it in another unit?"]
    );
    assert_eq!(Unit::guess("cpu_millicores.csv.gz", 2.0), Unit::Millicores);
    assert_eq!(Unit::guess("20110303.csv.gz", 2.0), Unit::Percent(2.0));
}

#[test]
fn a_unit_that_looks_wrong_is_told() {
    let told = |text: &str, unit| doubt(&read("f", text.as_bytes(), unit).unwrap(), unit);
    let (percent, cores, milli) = ("a,12,97\nb,3,0", "a,0.25,0.9\nb,0,0.1", "a,250,1800\nb,0,90");
    for (text, unit, expected) in [
        (percent, Unit::Percent(2.0), None),
        (percent, Unit::Cores, Some("a workload uses 97 cores: are the numbers percent, and not cores?")),
        (
            percent,
            Unit::Millicores,
            Some(
                "no workload ever uses more than 97 millicores: are the numbers percent or cores, and not millicores?",
            ),
        ),
        (cores, Unit::Cores, None),
        (
            cores,
            Unit::Percent(2.0),
            Some("no number is above 1 %: are they cores, or shares of 1, and not percent?"),
        ),
        (
            "a,0.25,0.4",
            Unit::Millicores,
            Some("nobody uses as much as a millicore: are the numbers in another unit?"),
        ),
        (milli, Unit::Millicores, None),
        (milli, Unit::Cores, Some("a workload uses 1800 cores: are the numbers millicores, and not cores?")),
    ] {
        assert_eq!(told(text, unit).as_deref(), expected, "{text:?} as {unit:?}");
    }
    for data in built_in::ALL {
        for (unit, name) in [(Unit::Millicores, "bitbrains"), (Unit::Percent(built_in::CORES), "google")] {
            if data.name == name {
                assert_eq!(doubt(&data.series(), unit), None, "{name}");
            }
        }
    }
}

#[test]
fn one_series_in_another_unit_than_the_others_is_told() {
    let told = |text: &str, unit| doubt(&read("f", text.as_bytes(), unit).unwrap(), unit);
    let among_percent = "a,12,97\nb,3,40\nc,0.25,0.9\nd,50,80";
    assert_eq!(
        told(among_percent, Unit::Percent(2.0)).as_deref(),
        Some(
            "\"c\" never uses more than 18 millicores, and the series in the middle 1600: is it in another unit than the others?"
        )
    );
    let among_cores = "a,0.2,0.9\nb,0.1,0.4\nc,0.3,0.2\nd,120,140\ne,90,110";
    let told_of = told(among_cores, Unit::Cores).unwrap();
    assert!(told_of.starts_with("a workload uses 140 cores"), "{told_of}");
    let among_milli = "a,250,1800\nb,100,900\nc,0.9,1.2\nd,1,2\ne,300,600";
    let told_of = told(among_milli, Unit::Millicores).unwrap();
    assert!(told_of.starts_with("\"c\" (and another one) never uses more than 1 "), "{told_of}");
    assert_eq!(
        told("a,12,97\nb,3,40\nc,0,0\nd,2,5", Unit::Percent(2.0)),
        None,
        "idle, or nearly, is no unit"
    );
    assert_eq!(told("a,12,97\nb,0.3,0.4", Unit::Percent(2.0)), None, "two have no middle");
    let planetlab = built_in::Data::find("planetlab").unwrap().series();
    assert_eq!(doubt(&planetlab, Unit::Percent(built_in::CORES)), None, "real ones");
}

#[test]
fn what_is_well_known_and_no_series_is_refused_by_its_name() {
    for (header, name) in [
        ("sn,cpu_milli,memory_mib,gpu,model", "openb-2023"),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli", "openb-2023"),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase", "openb-2023"),
        ("machine,gpu_type,cap_cpu,cap_mem_gb,cap_gpu", "pai-machines-2020"),
        ("vm,cores,cpu_mhz,mem_mib,cpu_mean_milli", "bitbrains-rnd-2013"),
        (
            "cpu_util_percent,mem_util_percent,net_in,net_out,disk_io_percent",
            "cluster-series of Alibaba 2018",
        ),
        ("avg_cpu,avg_mem,avg_assigned_mem,avg_cycles_per_instruction", "cluster-series of Google 2019"),
        ("timestamp,cpu_usage,assigned_mem", "cluster-series of Azure 2019"),
    ] {
        let problems = told(&format!("{header}\n1,2,3,4,5\n"), Unit::Cores);
        assert_eq!(problems.len(), 1, "{header}");
        assert!(problems[0].starts_with("f:1: this is ") && problems[0].contains(name), "{}", problems[0]);
    }
}

#[test]
fn problems_are_bounded_and_nothing_is_one() {
    let rows: Vec<String> = (0..30).map(|row| format!("r{row},x")).collect();
    let text = rows.join("\n");
    let told = told(&text, Unit::Cores);
    assert_eq!((told.len(), told[20].as_str()), (21, "f: and 10 more problems"));
    let nothing = read("f", b"", Unit::Cores).unwrap_err();
    assert!(nothing[0].message.starts_with("no series"));
}
