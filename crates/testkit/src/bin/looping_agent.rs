//! An agent for benchmarks of loops: `looping-agent FILE COUNT` changes its workspace a little in every iteration, and says in
//! iteration COUNT that the task is done. It appends when it began and when it ended, in nanoseconds since 1970, to FILE.

use std::{
    env, fs, io,
    io::{Read, Write, stdin, stdout},
    path::Path,
};

use tribunal_agents::driver::TASK_VARIABLE;
use tribunal_testkit::SessionStamp;

fn main() -> io::Result<()> {
    let stamp = SessionStamp::begin_session();
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
    stamp.append_to(Path::new(&stamp_path))
}
