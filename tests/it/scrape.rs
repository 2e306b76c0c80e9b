//! What a scrape says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use admit::prometheus::Metrics;
use admit::{Context, Cost, LaneOptions};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::kit::{Blocker, budget, builder, until};
use crate::watchdog::watch;

fn scrape(registry: &Registry) -> Vec<String> {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_scrape_says_what_stats_say_and_leaves_the_executor_to_its_owners() {
    let _watch = watch!();
    let lane = LaneOptions::new("a \"lane\"").capacity(1).input_bytes(4);
    let builder = builder(1, &budget(110)).waiting_bytes(10).lane(lane);
    let executor = Arc::new(builder.build().unwrap());
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Metrics::new(&executor)));
    let lane = executor.lane("a \"lane\"").unwrap();
    let keep = || Context::current().unwrap().keep(7).unwrap();
    let kept = lane.submit(Cost::new(8), keep).unwrap().join().unwrap();
    assert!(lane.submit(Cost::new(1), || panic!("on purpose")).unwrap().join().is_err());
    let blocker = Blocker::on(&lane, 90);
    let waiting = lane.submit(Cost::new(1).input(3), || ()).unwrap();
    assert!(lane.try_submit(Cost::new(1), || ()).is_err());
    let place = executor.default_lane().try_reserve(Cost::new(1).input(2)).unwrap();

    let lines = scrape(&registry);
    let lane_says = [
        ("waiting_jobs", "1"),
        ("reserved_places", "0"),
        ("blocked_submits", "0"),
        ("running_jobs", "1"),
        ("kept_permits", "1"),
        ("waiting_input_bytes", "3"),
        ("running_bytes", "90"),
        ("kept_bytes", "7"),
        ("overtakes_total", "0"),
    ];
    for (name, value) in lane_says {
        let line = format!("admit_{name}{{lane=\"a \\\"lane\\\"\"}} {value}");
        assert!(lines.contains(&line), "{line} is not among {lines:#?}");
    }
    let ends = [("completed", 1), ("panicked", 1), ("refused_full", 1), ("cancelled", 0)];
    for (ended, count) in ends {
        let labels = format!("{{lane=\"a \\\"lane\\\"\",ended=\"{ended}\"}}");
        assert!(lines.contains(&format!("admit_jobs_total{labels} {count}")), "{ended}");
        let waits = lines.contains(&format!("admit_wait_seconds_count{labels} {count}"));
        assert_eq!(waits, count > 0, "{ended}");
        let has_run = ["completed", "panicked"].contains(&ended);
        let runs = lines.contains(&format!("admit_run_seconds_count{labels} {count}"));
        assert_eq!(runs, has_run, "{ended}");
    }
    for line in [
        "admit_capacity_bytes 110",
        "admit_reserve_bytes 0",
        "admit_waiting_limit_bytes 10",
        "admit_admissible_bytes 100",
        "admit_held_bytes 97",
        "admit_workers 1",
        "admit_free_workers 0",
        "admit_acquired_permits 0",
        "admit_reserved_places{lane=\"default\"} 1",
        "admit_waiting_input_bytes{lane=\"default\"} 2",
        "# EOF",
    ] {
        assert!(lines.iter().any(|its| its == line), "{line} is not among {lines:#?}");
    }
    drop((kept, place));
    blocker.release();
    waiting.join().unwrap();
    drop((lane, executor));
    assert_eq!(scrape(&registry), ["# EOF"]);
}

/// Each bucket has those up to its bound and not in the one before, and they come to all.
#[test]
fn histograms_have_every_job_in_one_bucket() {
    let _watch = watch!();
    let executor = Arc::new(builder(1, &budget(100)).build().unwrap());
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Metrics::new(&executor)));
    for millis in [0, 3, 3, 20] {
        let runs = move || {
            let began = Instant::now();
            until(|| began.elapsed() >= Duration::from_millis(millis));
        };
        executor.submit(Cost::new(1), runs).unwrap().join().unwrap();
    }
    executor.drain().unwrap();
    let lines = scrape(&registry);
    let value = |name: &str| -> f64 {
        let line = lines.iter().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} is not among {lines:#?}")).trim().parse().unwrap()
    };
    let labels = "lane=\"default\",ended=\"completed\"";
    let bucket =
        |bound: &str| value(&format!("admit_run_seconds_bucket{{le=\"{bound}\",{labels}}}"));
    // How long they ran at least is certain, and how long at most is not.
    assert!(bucket("0.002") <= 1.0 && bucket("0.016") <= 3.0);
    let bounds = ["0.001", "0.002", "0.004", "0.064", "1.0", "10.0", "+Inf"].map(bucket);
    assert!(bounds.is_sorted(), "{bounds:?}");
    assert_eq!(bounds[6], 4.0);
    assert_eq!(value(&format!("admit_run_seconds_count{{{labels}}}")), 4.0);
    assert!(value(&format!("admit_run_seconds_sum{{{labels}}}")) >= 0.025);
}
