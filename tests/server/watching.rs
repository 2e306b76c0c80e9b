//! The plan, the metrics and the plots.

use serde_json::Value;

use crate::process::{Server, get};

#[test]
fn the_plan_is_printed_before_it_listens() {
    let server = Server::with(&["--memory", "384MiB", "--workers", "3"]);
    assert!(server.greeting.contains("3 workers"), "{}", server.greeting);
    assert!(server.greeting.contains("214 MiB for jobs"), "{}", server.greeting);
}

/// Whoever takes all connections does not take these.
#[test]
fn an_address_of_its_own_tells_how_the_server_is_whoever_has_all_connections() {
    let options = ["--memory", "512MiB", "--connections", "2", "--watch", "127.0.0.1:0"];
    let server = Server::with(&options);
    let address = server.greeting.lines().find_map(|line| line.strip_prefix("watch it on http://"));
    let address = address.unwrap().parse().unwrap();
    let _all = [server.begin("/gzip", 1), server.begin("/gzip", 1)];
    for path in ["/healthz", "/metrics", "/", "/plots/jobs.svg"] {
        assert_eq!(get(address, path).status, 200, "{path}");
    }
    assert_eq!(get(address, "/gzip").status, 404);
}

#[test]
fn metrics_tell_of_each_lane() {
    let server = Server::start();
    assert_eq!(server.post("/gzip", b"contents").status, 200);
    assert_eq!(server.post("/hash", b"garbage").status, 400);
    server.wait_for("admit_jobs_total{lane=\"gzip\",ended=\"completed\"}", |jobs| jobs == 1.0);
    for lane in ["light", "hash-medium", "hash-large", "gzip", "thumbnail"] {
        assert_eq!(server.metric(&format!("admit_waiting_jobs{{lane=\"{lane}\"}}")), 0.0);
    }
    assert!(server.get("/metrics").head.contains("application/openmetrics-text"));
}

#[test]
fn plots_are_pictures_with_a_line_for_each_lane() {
    let server = Server::start();
    for (plot, lines) in [
        ("bytes", &["capacity", "admissible", "held by jobs and answers", "waiting bodies"][..]),
        ("jobs", &["light", "hash-medium", "hash-large", "gzip", "thumbnail"]),
        ("waits", &["light", "hash-medium", "hash-large", "gzip", "thumbnail"]),
    ] {
        let answer = server.get(&format!("/plots/{plot}.svg"));
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains("content-type: image/svg+xml"));
        let svg = answer.text();
        for line in lines {
            assert!(svg.contains(&format!("{line}\n")), "{plot}: no {line} in {svg}");
        }
    }
    assert!(server.get("/").text().contains("data-plot=\"bytes\""));
}

/// Every metric that the dashboard names, of a server that has done something.
#[test]
fn the_dashboard_shows_metrics_that_there_are() {
    let server = Server::start();
    assert_eq!(server.post("/gzip", b"contents").status, 200);
    server.wait_for("admit_jobs_total{lane=\"gzip\",ended=\"completed\"}", |jobs| jobs == 1.0);
    let metrics = server.get("/metrics").text();
    let dashboard = include_str!("../../examples/server/grafana.json");
    let dashboard: Value = serde_json::from_str(dashboard).unwrap();
    let mut named = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            let words = query.split(|c: char| !c.is_alphanumeric() && c != '_');
            for metric in words.filter(|word| word.starts_with("admit_")) {
                let is_there = metrics.lines().any(|line| {
                    line.strip_prefix(metric).is_some_and(|rest| rest.starts_with(['{', ' ']))
                });
                assert!(is_there, "{metric}, of the panel {}", panel["title"]);
                named += 1;
            }
        }
    }
    assert!(named >= 15, "{named}");
}
