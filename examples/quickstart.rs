//! Hashes five passwords with scrypt, two at a time: that many fit into the budget.

use std::error::Error;

use admit::{Budget, Executor, MIB, preset};
use scrypt::{Params, scrypt};

fn main() -> Result<(), Box<dyn Error>> {
    // 192 MiB, 32 of them never given out. What is left has room for two hashes of 64 MiB.
    let budget = Budget::new(192 * MIB, 32 * MIB)?;
    let executor = Executor::builder().workers(4).budget(budget).build()?;

    let (log_n, r, p) = (16, 8, 1);
    let cost = preset::scrypt(log_n, r, p)?;
    let params = Params::new(log_n, r, p)?;

    let mut handles = Vec::new();
    for password in ["apple", "birch", "cedar", "dogwood", "elm"] {
        let hash = move || {
            let mut hash = [0; 32];
            scrypt(password.as_bytes(), b"a random salt", &params, &mut hash).map(|()| hash)
        };
        handles.push(executor.submit(cost, hash)?);
    }
    for handle in handles {
        handle.join()??;
    }

    let stats = executor.stats();
    let at_once = stats.ledger.peak_held_bytes / cost.working_bytes();
    println!("{} hashes, at most {at_once} at once", stats.counts.completed);
    Ok(())
}
