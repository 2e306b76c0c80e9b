//! All of it, for where there are control groups.

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

use self::group::Hierarchy;
use self::options::{Mode, Options};
use self::report::Report;

pub(crate) fn run() -> ExitCode {
    let options = Options::parse();
    if let Some(Mode::Child(child)) = &options.mode {
        return child::run(child);
    }
    let mut report = Report::new(options.json);
    if !options.only_emulated {
        match Hierarchy::find() {
            Ok(hierarchy) => {
                report.title(&hierarchy.to_string());
                for case in trial::cases(&options.filter) {
                    let outcomes =
                        watch::run(&hierarchy, &case, options.runs_of(&case), options.scale);
                    report.case(&case, &outcomes);
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
    report.end(options.require)
}
