//! What the source promises about itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Plain data that the public surface and the mechanism have in common.
const PLAIN: [&str; 8] =
    ["cost", "error", "ledger", "counts", "times", "fact", "overtaking", "oversize"];

/// The mechanism, from the bottom up. A module uses those before it, and plain data, and nothing
/// else: so edges point one way, and none to the surface.
const MECHANISM: [&str; 24] = [
    "sys",
    "sync",
    "line",
    "accounts",
    "answer",
    "effects",
    "pace",
    "queue",
    "intake",
    "bench",
    "crew",
    "permits",
    "admission",
    "waiter",
    "trace",
    "job",
    "running",
    "waits",
    "gate",
    "lookout",
    "retention",
    "shared",
    "within",
    "worker",
];

const MOST_LINES: usize = 500;

/// Every source file, without the tests at its end.
fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("src is there") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root).expect("below").to_string_lossy().into_owned();
                let source = fs::read_to_string(&path).expect("readable");
                let code = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
                sources.insert(name, code.to_owned());
            }
        }
    }
    sources
}

/// The modules that a source names after `crate::`.
fn used(source: &str) -> Vec<&str> {
    source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(""))
        .filter(|name| name.chars().all(|c| c.is_lowercase() || c == '_') && !name.is_empty())
        .collect()
}

#[test]
fn edges_point_one_way_and_none_from_the_mechanism_to_the_surface() {
    let sources = sources();
    let plain = PLAIN.iter().map(|module| (*module, &MECHANISM[..2]));
    let mechanism = MECHANISM.iter().enumerate().map(|(at, module)| (*module, &MECHANISM[..at]));
    for (module, below) in plain.chain(mechanism) {
        let folder = format!("{module}/");
        let files: Vec<_> = sources
            .iter()
            .filter(|(name, _)| **name == format!("{module}.rs") || name.starts_with(&folder))
            .collect();
        assert!(!files.is_empty(), "there is no module {module}");
        for (name, source) in files {
            for used in used(source) {
                assert!(
                    used == module || below.contains(&used) || PLAIN.contains(&used),
                    "src/{name} uses crate::{used}"
                );
            }
        }
    }
}

#[test]
fn the_state_machine_has_no_lock_no_thread_and_no_clock() {
    let sources = sources();
    for name in [
        "admission.rs",
        "crew.rs",
        "bench.rs",
        "permits.rs",
        "queue.rs",
        "pace.rs",
        "line.rs",
        "ledger.rs",
        "intake.rs",
    ] {
        let code = &sources[name];
        for word in ["Mutex", "Atomic", "std::thread", "Instant", "Moment::now", "park("] {
            assert!(!code.contains(word), "src/{name} has {word}");
        }
    }
}

#[test]
fn files_hold_one_noun_and_are_read_in_one_go() {
    for (name, source) in sources() {
        let lines = source.lines().count();
        assert!(lines <= MOST_LINES, "src/{name} has {lines} lines");
        assert!(!name.contains("util"), "src/{name} is named after no noun");
    }
}

#[test]
fn unsafe_code_is_in_sys_and_in_the_one_erasure_of_scope() {
    for (name, source) in sources() {
        let blocks = source.matches("unsafe {").count();
        let explained = source.matches("SAFETY:").count();
        match &*name {
            "scope.rs" => assert_eq!(blocks, 1),
            _ if name.starts_with("sys/") => {}
            _ => assert_eq!(blocks, 0, "src/{name}"),
        }
        assert_eq!(blocks, explained, "src/{name}");
    }
}

#[test]
fn readme_begins_with_the_quickstart_and_the_two_commands_ci_runs() {
    let readme = include_str!("../README.md");
    let program = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    assert_eq!(program, Some(include_str!("../examples/quickstart.rs")));

    let ci = include_str!("../.ci/run");
    for command in ["cargo run --release --example batch", "cargo test --all-features"] {
        let first_screen: Vec<&str> = readme.lines().take(24).collect();
        assert!(first_screen.iter().any(|line| line.trim_start().starts_with(command)));
        let in_ci = command.replacen("cargo run", "cargo run --locked", 1);
        let in_ci = in_ci.replacen("cargo test", "cargo test --locked", 1);
        assert!(ci.contains(&in_ci), "{in_ci} is not in .ci/run");
    }
}
