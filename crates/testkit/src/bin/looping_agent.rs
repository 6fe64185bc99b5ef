//! An agent for benchmarks of loops: `looping-agent FILE COUNT` changes its workspace a little in every iteration, and says in
//! iteration COUNT that the task is done. It appends when it began and when it ended, in nanoseconds since 1970, to FILE.

use std::{
    env, fs, io,
    io::{Read, Write, stdin, stdout},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use tribunal_agents::driver::TASK_VARIABLE;
use tribunal_testkit::append_line;

fn current_nanoseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

fn main() -> io::Result<()> {
    let began_at = current_nanoseconds();
    let usage = || io::Error::other("usage: looping-agent FILE COUNT");
    let stamp_path = env::args().nth(1).ok_or_else(usage)?;
    let last_iteration: u32 = env::args().nth(2).and_then(|count| count.parse().ok()).ok_or_else(usage)?;
    stdin().read_to_string(&mut String::new())?;
    // The key of the task is `iteration-N/turn`.
    let task_name = env::var(TASK_VARIABLE).unwrap_or_default();
    let iteration: u32 = task_name
        .split('/')
        .next()
        .and_then(|stage| stage.strip_prefix("iteration-"))
        .and_then(|number| number.parse().ok())
        .unwrap_or_default();
    fs::write("progress.txt", format!("iteration {iteration}\n"))?;
    writeln!(stdout(), "Did step {iteration}.")?;
    if iteration >= last_iteration {
        writeln!(stdout(), "<promise>COMPLETE</promise>")?;
    }
    stdout().flush()?;
    append_line(Path::new(&stamp_path), &format!("{began_at} {}", current_nanoseconds()))
}
