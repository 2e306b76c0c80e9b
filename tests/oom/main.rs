//! Real out-of-memory trials: the kernel is the judge.
//!
//! Every trial is a child process in a memory control group of its own. Whether it survived is
//! read from the kernel's counters, and each has a control that has to die, so that a survival
//! means something.
//!
//! `cargo test --test oom` runs each once, where control groups can be made.
//! `-- --runs 20 --emulated --runs-emulated 5 --require` is what CI does: with it, whatever cannot
//! be run is a failure. `-- --help` has the rest.

mod allocator;
mod child;
mod emulated;
mod group;
mod options;
mod plain;
mod report;
mod trial;
mod watch;
mod work;

use std::process::ExitCode;

use clap::Parser;

use crate::group::Hierarchy;
use crate::options::{Mode, Options};
use crate::report::Report;

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(Mode::Child(child)) = &options.mode {
        return child::run(child);
    }
    let mut report = Report::new(options.json);
    if !options.only_emulated {
        match Hierarchy::find() {
            Ok(hierarchy) => {
                group::sweep(&hierarchy);
                report.title(&hierarchy.to_string());
                for case in trial::cases(&options.filter) {
                    let runs = if case.is_control { options.control_runs() } else { options.runs };
                    report.case(&case, &watch::run(&hierarchy, &case, runs, options.scale));
                }
            }
            Err(why) => report.skip("trials on this machine's kernel", &why, options.require),
        }
    }
    if options.emulated || options.only_emulated {
        if let Err(why) = emulated::run(&options, &mut report) {
            report.skip("trials on an emulated machine with cgroup v2", &why, options.require);
        }
    } else if !options.json {
        println!("\nskipped: cgroup v2 on an emulated machine, which --emulated boots");
    }
    report.end()
}
