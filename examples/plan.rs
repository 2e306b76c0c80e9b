//! Prints what an executor would be like on this machine, and why.
//!
//! `cargo run --example plan`, or with `--json`. Nothing is started.

use std::error::Error;
use std::io::Write;

use admit::{Budget, CpuFacts, CpuPolicy, Executor, Fact, MemoryFacts, Plan, Reserve, Rounding};
use clap::Parser;
use serde_json::{Value, json};

#[derive(Parser)]
#[command(about = "Prints what an executor would be like on this machine, and why")]
struct Options {
    /// Prints one JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// The number of workers.
    #[arg(long)]
    workers: Option<usize>,
    /// As many workers as there are processors, but at most so many.
    #[arg(long, value_name = "MOST", conflicts_with = "workers")]
    capped: Option<usize>,
    /// As many workers as the CPU quota stands for, rounded up.
    #[arg(long, conflicts_with_all = ["workers", "capped"])]
    per_quota: bool,
    /// Lets the environment variable ADMIT_WORKERS say otherwise.
    #[arg(long)]
    environment: bool,
    /// The part of the memory limit that is kept in reserve.
    #[arg(long, value_name = "FRACTION")]
    reserve: Option<f64>,
    /// The least that is kept in reserve, as in "64 MiB".
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    reserve_bytes: Option<u64>,
}

fn bytes(text: &str) -> Result<u64, String> {
    parse_size::Config::new().with_binary().parse_size(text).map_err(|error| error.to_string())
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    match plan(&options) {
        Ok(plan) => {
            let text = if options.json { format!("{:#}", json_of(&plan)) } else { text_of(&plan) };
            Ok(writeln!(std::io::stdout(), "{text}")?)
        }
        Err(error) => {
            // What is known is worth more now, not less.
            eprintln!("{}\n{}", CpuFacts::detect(), MemoryFacts::detect());
            Err(error)
        }
    }
}

fn plan(options: &Options) -> Result<Plan, Box<dyn Error>> {
    let mut policy = match (options.capped, options.per_quota) {
        (Some(most), _) => CpuPolicy::capped(most),
        (None, true) => CpuPolicy::per_quota(Rounding::Up),
        (None, false) => CpuPolicy::automatic(),
    };
    if options.environment {
        policy = policy.or_environment();
    }
    let mut builder = Executor::builder().cpu_policy(policy);
    if let Some(workers) = options.workers {
        builder = builder.workers(workers);
    }
    let reserve = match (options.reserve, options.reserve_bytes) {
        (None, None) => None,
        (Some(fraction), bytes) => Some(Reserve::fraction(fraction).at_least(bytes.unwrap_or(0))),
        (None, Some(bytes)) => Some(Reserve::bytes(bytes)),
    };
    if let Some(reserve) = reserve {
        builder = builder.budget(Budget::detect_with(reserve)?);
    }
    Ok(builder.plan()?)
}

fn text_of(plan: &Plan) -> String {
    let admissible_bytes = plan.memory.ledger.admissible_bytes();
    let mut text = format!("{plan}\nadmissible: {admissible_bytes} bytes");
    if let Some(facts) = &plan.workers.found {
        text += &format!("\n\n{facts}");
    }
    text + &format!("\n\n{}", plan.memory.found)
}

fn json_of(plan: &Plan) -> Value {
    let (workers, memory) = (&plan.workers, &plan.memory);
    json!({
        "workers": {
            "asked": workers.asked.to_string(),
            "decided": workers.decided,
            "source": workers.source.to_string(),
            "nice_beyond": workers.nice_beyond,
            "found": workers.found.as_ref().map(|facts| json!({
                "available_parallelism": facts.available_parallelism,
                "allowed": facts.allowed,
                "quota": fact(&facts.quota),
                "cgroup_threads": fact(&facts.cgroup_threads),
                "user_threads": fact(&facts.user_threads),
            })),
        },
        "memory": {
            "asked": memory.asked.map(|reserve| reserve.to_string()),
            "capacity_bytes": memory.ledger.capacity_bytes,
            "reserve_bytes": memory.ledger.reserve_bytes,
            "admissible_bytes": memory.ledger.admissible_bytes(),
            "source": memory.source,
            "baseline_bytes": memory.baseline_bytes,
            "is_above_limit": memory.is_above_limit(),
            "found": {
                "cgroup_max": fact(&memory.found.cgroup_max),
                "cgroup_high": fact(&memory.found.cgroup_high),
                "physical": fact(&memory.found.physical),
                "address_space": fact(&memory.found.address_space),
                "data": fact(&memory.found.data),
                "mapped_bytes": memory.found.mapped_bytes,
                "resident_bytes": memory.found.resident_bytes,
            },
        },
        "allocator": plan.allocator.to_string(),
    })
}

fn fact<T: serde::Serialize>(fact: &Fact<T>) -> Value {
    match fact {
        Fact::Limited { limit, at } => json!({ "limited": limit, "at": at }),
        Fact::Unlimited => json!("unlimited"),
        Fact::Unread { why } => json!({ "unread": why }),
        _ => Value::Null,
    }
}
