//! From two files to hunks, by the code that the helper runs when an agent writes: prints the nanoseconds that it took, and
//! how many hunks there are. `hunks.py` measures git beside it.

use std::error::Error;
use std::time::Instant;

use agentchat::changes::{between, lines};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(old), Some(new)) = (arguments.next(), arguments.next()) else {
        return Err("two files are needed".into());
    };
    let start = Instant::now();
    let (old, new) = (std::fs::read_to_string(old)?, std::fs::read_to_string(new)?);
    let hunks = between(&lines(&old).0, &lines(&new).0, 1);
    let taken = start.elapsed();
    #[expect(clippy::print_stdout, reason = "what a bench is for")]
    {
        println!("{} {}", taken.as_nanos(), hunks.len());
    }
    Ok(())
}
