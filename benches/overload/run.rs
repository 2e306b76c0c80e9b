//! All runs, one after the other.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Parser;

use crate::bodies::Bodies;
use crate::browser::Browser;
use crate::capacity;
use crate::expected::{Unmet, unmet};
use crate::group::Hierarchy;
use crate::load::Kind;
use crate::naive;
use crate::options::{Options, Serve, Service};
use crate::report;
use crate::result::Result as Figures;
use crate::served::Served;
use crate::trial::{self, Plan};

type Failure = Box<dyn std::error::Error>;

/// The clients', which are on the same processors.
const CLIENT_THREADS: usize = 2;

pub(crate) fn run() -> ExitCode {
    let options = Options::parse();
    let result = match options.service {
        Some(Serve::Naive { admissible_mib }) => naive::run(admissible_mib).map(|()| true),
        None => try_all(&options),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all is well.
fn try_all(options: &Options) -> Result<bool, Failure> {
    let hierarchy = match Hierarchy::find() {
        Ok(hierarchy) => hierarchy,
        Err(why) => {
            println!("skipped: {why}");
            return Ok(!options.require);
        }
    };
    let server = server()?;
    let bodies = Arc::new(Bodies::prepare()?);
    print_costs(&bodies);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(CLIENT_THREADS)
        .enable_all()
        .build()?;
    let mut broken = Vec::new();
    let mut details = Vec::new();
    println!("{}", report::HEAD);
    for run in 0..options.runs {
        let lasts = Duration::from_secs(options.seconds);
        let plan = Plan { per_second: options.rate, lasts, seed: options.seed + 100 * run };
        for service in &options.services {
            let two_threads = capacity::of_two_threads(&bodies);
            let mut served = start(&hierarchy, *service, &server, options)?;
            let picture = match &options.screenshot {
                Some(file) if *service == Service::Admit => Some(picture(&served, plan, file)?),
                _ => None,
            };
            let seen = runtime.block_on(trial::run(&mut served, &bodies, plan))?;
            if let Some(picture) = picture {
                picture.join().map_err(|_| "the thread that takes the picture panicked")??;
            }
            let figures = Figures::of(&seen, &bodies, plan);
            let name = format!("{service:?}, {} requests/s", options.rate);
            println!("{}", report::row(&name, &figures));
            details.push(report::details(&name, &figures, two_threads));
            if *service == Service::Admit {
                broken.extend(unmet(&figures));
            }
        }
    }
    println!("\n{}", details.join("\n"));
    for promise in &broken {
        let about = if promise.is_of_time { "of time" } else { "of counts" };
        println!("not kept ({about}): {}", promise.what);
    }
    let is_required =
        |promise: &Unmet| options.require_times || options.require && !promise.is_of_time;
    Ok(!broken.iter().any(is_required))
}

/// Takes a picture when most of the overload is over.
fn picture(
    served: &Served,
    plan: Plan,
    file: &Path,
) -> Result<JoinHandle<std::io::Result<()>>, Failure> {
    let browser = Browser::find()?.ok_or("a picture needs Chromium")?;
    let url = format!("http://{}/", served.address);
    let (file, after) = (file.to_owned(), trial::ALONE + plan.lasts.mul_f64(0.8));
    Ok(thread::spawn(move || {
        thread::sleep(after);
        browser.screenshot(&url, &file)
    }))
}

fn print_costs(bodies: &Bodies) {
    println!("cost of a request without load:");
    for kind in Kind::ALL {
        for body in bodies.of_kind(kind) {
            println!(
                "  {:<12} {:>6.1} ms of a processor, {:>5.1} MiB sent",
                kind.lane(),
                body.cpu.as_secs_f64() * 1e3,
                body.body.len() as f64 / f64::from(1 << 20),
            );
        }
    }
    println!();
}

/// The example, built as its users build it.
fn server() -> Result<PathBuf, Failure> {
    let cargo = std::env::var_os("CARGO").ok_or("to be run by cargo, which builds the server")?;
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--all-features", "--example", "server"]);
    if !command.current_dir(env!("CARGO_MANIFEST_DIR")).status()?.success() {
        return Err("the server could not be built".into());
    }
    let this = std::env::current_exe()?;
    // target/release/deps/overload-...
    let target = this.ancestors().nth(2).ok_or("this program has no folder")?;
    Ok(target.join("examples/server"))
}

fn start(
    hierarchy: &Hierarchy,
    service: Service,
    server: &Path,
    options: &Options,
) -> Result<Served, Failure> {
    let limit_bytes = options.limit_mib << 20;
    let naive = std::env::current_exe()?;
    let half = format!("--admissible-mib={}", options.limit_mib / 2);
    let (program, arguments): (&Path, &[&str]) = match service {
        Service::Admit => (server, &["--listen", "127.0.0.1:0"]),
        Service::Semaphore => (&naive, &["naive", &half]),
        Service::SpawnBlocking => (&naive, &["naive"]),
    };
    let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join("overload.log");
    Served::start(hierarchy, limit_bytes, program, &arguments, &log)
}
