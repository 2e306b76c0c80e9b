//! The machine that the tests run on.

use admit::{CpuFacts, Fact, MIB, MemoryFacts};

#[test]
fn this_machines_memory_is_known() {
    let memory = MemoryFacts::detect();
    assert!(memory.physical.limit().is_some_and(|bytes| bytes > MIB), "{memory}");
    assert!(!matches!(memory.least(), Fact::Unlimited), "{memory}");
    let mapped = memory.mapped_bytes.unwrap();
    let resident = memory.resident_bytes.unwrap();
    assert!(0 < resident && resident <= mapped, "{memory}");
}

#[test]
fn the_standard_library_counts_the_same_processors() {
    let cpu = CpuFacts::detect();
    let allowed = cpu.allowed.unwrap();
    let expected = match &cpu.quota {
        // It looks nowhere else.
        Fact::Limited { limit, at } if at.starts_with("/sys/fs/cgroup/") => {
            allowed.min((limit.floor() as usize).max(1))
        }
        Fact::Unlimited => allowed,
        // It counts what it can see, and does not say what it could not.
        _ => return,
    };
    assert_eq!(cpu.available_parallelism, Some(expected), "{cpu}");
}
