//! An agent that raises nothing and notes when it ended: `stamping-agent FILE` appends the task and nanoseconds since 1970.
//! `cargo xtask bench` compares that with the journal.

use std::{
    env, fs, io,
    io::{Read, Write, stdin, stdout},
    time::{SystemTime, UNIX_EPOCH},
};

use tribunal_agents::driver::TASK_VARIABLE;

fn main() -> io::Result<()> {
    let path = env::args().nth(1).ok_or_else(|| io::Error::other("usage: stamping-agent FILE"))?;
    stdin().read_to_string(&mut String::new())?;
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path)?;
    let task = env::var(TASK_VARIABLE).unwrap_or_default();
    writeln!(stdout(), "findings: []")?;
    stdout().flush()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    writeln!(file, "{task} {}", now.as_nanos())
}
