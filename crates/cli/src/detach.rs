//! `--detach`: the same command once more, without the terminal. The first thing it records says which run it is.

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Write, stdout},
    process::{Command, Stdio},
};

use serde_json::Value;
use tribunal_runner::Project;

use crate::{
    complaint::{Complaint, ENVIRONMENT},
    context::Context,
};

/// What the second one must not be told again.
pub(crate) const FLAG: &str = "--detach";

pub(crate) fn detach(context: &Context, project: &Project) -> Result<u8, Complaint> {
    let failed = |what: &str, cause: std::io::Error| {
        Complaint::new(
            ENVIRONMENT,
            format!("the run could not be started in the background: {what}: {cause}"),
        )
        .why("Nothing was started.")
        .todo("run it in the terminal, without --detach")
    };
    let folder = project.home().join("logs");
    fs::create_dir_all(&folder).map_err(|cause| failed(&folder.display().to_string(), cause))?;
    let path = folder.join("detached.log");
    let log = fs::OpenOptions::new().create(true).append(true).open(&path);
    let log = log.map_err(|cause| failed(&path.display().to_string(), cause))?;

    let own = std::env::current_exe().map_err(|cause| failed("own program", cause))?;
    let arguments: Vec<OsString> = std::env::args_os().skip(1).filter(|word| word != FLAG).collect();
    let mut command = Command::new(tribunal_supervise::own_program().unwrap_or(own));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    if !context.json {
        command.arg("--json");
    }
    let mut child =
        tribunal_supervise::start_detached(command).map_err(|cause| failed("own program", cause))?;
    let mut first = String::new();
    if let Some(out) = child.stdout.take() {
        // It records one line after the other; from the second on nobody listens, and it does not mind.
        BufReader::new(out).read_line(&mut first)?;
    }
    let said: Value = serde_json::from_str(&first).unwrap_or_default();
    match said["run"].as_str() {
        Some(run) if context.json => writeln!(stdout(), "{}", tell(run, child.id()))?,
        Some(run) => {
            let tribunal = &context.answers.program;
            let mut out = stdout().lock();
            writeln!(out, "run {run} goes on in the background (process {})", child.id())?;
            writeln!(out, "  {tribunal} log {run} --follow    to watch it")?;
            writeln!(out, "  {tribunal} stop {run}            to stop it; what runs may finish")?;
        }
        None => return Err(Complaint::read(&said).unwrap_or_else(|| silent(&path))),
    }
    Ok(0)
}

fn tell(run: &str, process: u32) -> Value {
    serde_json::json!({ "schema": "tribunal.detached/1", "run": run, "process": process })
}

fn silent(log: &std::path::Path) -> Complaint {
    Complaint::new(ENVIRONMENT, "the run in the background ended before it recorded anything")
        .todo(format!("see what it said: {}", log.display()))
}
