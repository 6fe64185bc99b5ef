//! An agent that raises nothing and records when it ended: `stamping-agent FILE` appends the task and nanoseconds since 1970.
//! `cargo xtask bench` compares that with the journal.

use std::{
    env, io,
    io::{Read, Write, stdin, stdout},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use tribunal_agents::driver::TASK_VARIABLE;
use tribunal_testkit::append_line;

fn main() -> io::Result<()> {
    let stamp_path = env::args().nth(1).ok_or_else(|| io::Error::other("usage: stamping-agent FILE"))?;
    stdin().read_to_string(&mut String::new())?;
    let task_name = env::var(TASK_VARIABLE).unwrap_or_default();
    writeln!(stdout(), "findings: []")?;
    stdout().flush()?;
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    append_line(Path::new(&stamp_path), &format!("{task_name} {}", since_epoch.as_nanos()))
}
