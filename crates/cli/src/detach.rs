//! `--detach` starts the same command again without the terminal. The first entry that it records tells which run it is. If it
//! records nothing, its error is passed on with its exit code.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write, stderr, stdout},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tribunal_report::{clean_block, escaped, escaped_json};
use tribunal_runner::Project;

use crate::{
    complaint::{Complaint, ENVIRONMENT},
    context::Context,
};

/// The flag that the child must not get.
const FLAG: &str = "--detach";
const LOG: &str = "detached.log";
/// How many lines of the log are shown.
const TAIL: usize = 10;
/// How many bytes are read for them at most.
const TAIL_BYTES: u64 = 8 << 10;

/// The runs that follow the first one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Following {
    /// The number of runs besides the first one.
    pub runs: usize,
    /// The number of runs that work at the same time, including the first one.
    pub at_once: usize,
}

/// Starts the command in the background and reports the run that it works on.
pub(crate) fn detach(context: &Context, project: &Project, following: Following) -> Result<u8, Complaint> {
    let logs = project.home().join("logs");
    // A link in place of the directory would make the child write outside the project.
    if let Some(to) = project.leads_out(&logs.join(LOG)) {
        return Err(Complaint::usage(format!(
            "{} leads out of the project, to {}",
            logs.display(),
            to.display()
        ))
        .why("Tribunal writes inside the project only. Nothing was started.")
        .todo("put a folder in the place of the link"));
    }
    let mut log = Log::open(&logs)?;
    let own = std::env::current_exe().map_err(|cause| failed("own program", &cause))?;
    // The path of the running binary may be gone after an update; the supervisor knows a path that stays valid.
    let mut command = Command::new(tribunal_supervise::own_program().unwrap_or(own));
    command.args(arguments(std::env::args_os().skip(1)));
    // The child has no input, and its error output goes to the log.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.share()?);
    let mut child =
        tribunal_supervise::start_detached(command).map_err(|cause| failed("own program", &cause))?;
    // From here on the child is on its own; only its first words are awaited.
    match listen(&mut child)? {
        Heard::Run { run, before } => {
            // Of several runs some may have failed before the first one started.
            for complaint in before {
                write!(stderr(), "{complaint}")?;
            }
            tell(context, &run, child.id(), following)?;
        }
        Heard::Complaint(complaint) => {
            child.wait()?;
            return Err(complaint);
        }
        Heard::Nothing => return ended_early(&mut child, &mut log),
    }
    Ok(0)
}

/// The error for a child that could not be started.
fn failed(what: &str, cause: &io::Error) -> Complaint {
    Complaint::new(ENVIRONMENT, format!("the run could not be started in the background: {what}: {cause}"))
        .why("Nothing was started.")
        .todo("run it in the terminal, without --detach")
}

/// The child's arguments. `--json` comes first, because behind `--` every argument is a file name, even one that looks like our
/// flag.
fn arguments(typed: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut files = false;
    let mut told = vec!["--json".into()];
    for word in typed {
        files |= word == "--";
        if files || (word != FLAG && word != "--json") {
            told.push(word);
        }
    }
    told
}

/// The first thing that the child reported.
enum Heard {
    /// A run started. Errors of other runs may have come before it.
    Run { run: String, before: Vec<Complaint> },
    /// No run started; this is the first error.
    Complaint(Complaint),
    /// The child ended without reporting anything.
    Nothing,
}

/// Reads the child's output up to the first line that names a run. After that the pipe is closed, and the child ignores that.
fn listen(child: &mut Child) -> io::Result<Heard> {
    let Some(out) = child.stdout.take() else { return Ok(Heard::Nothing) };
    let mut before = Vec::new();
    for line in BufReader::new(out).split(b'\n') {
        // Lines that are not JSON are ignored: they become null, which names neither a run nor an error.
        let said: Value = serde_json::from_slice(&line?).unwrap_or_default();
        before.extend(Complaint::read(&said));
        if let Some(run) = said["run"].as_str() {
            return Ok(Heard::Run { run: run.to_string(), before });
        }
    }
    Ok(before.into_iter().next().map_or(Heard::Nothing, Heard::Complaint))
}

/// Prints which run goes on in the background, and how to watch and stop it.
fn tell(context: &Context, run: &str, process: u32, following: Following) -> Result<(), Complaint> {
    let mut out = stdout().lock();
    if context.json {
        let document = serde_json::json!({
            "schema": "tribunal.detached/1", "run": run, "process": process, "following": following.runs,
        });
        writeln!(out, "{}", escaped_json(&document.to_string()))?;
        return Ok(());
    }
    let (run, tribunal) = (escaped(run), &context.answers.program);
    writeln!(out, "run {run} goes on in the background (process {process})")?;
    if following.runs > 0 {
        let subjects = match following.runs {
            1 => "1 more subject follows".to_string(),
            more => format!("{more} more subjects follow"),
        };
        let how = match following.at_once {
            0 | 1 => "one after the other".to_string(),
            at_once => format!("at most {at_once} at once"),
        };
        writeln!(out, "  {subjects}, {how}, each as a run of its own: {tribunal} runs")?;
    }
    writeln!(out, "  {tribunal} log {run} --follow    to watch it")?;
    writeln!(out, "  {tribunal} stop {run}            to stop it; what runs may finish")?;
    Ok(())
}

/// Reports a child that ended before it recorded anything: only its exit code and its log are left.
fn ended_early(child: &mut Child, log: &mut Log) -> Result<u8, Complaint> {
    let status = child.wait()?;
    let said = log.tail();
    // A command that has nothing to do succeeds without a run; what it said about that is passed on.
    if status.success() {
        write!(stderr(), "{}", clean_block(&said))?;
        return Ok(0);
    }
    // A child that was killed by a signal has no exit code.
    let exit = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(ENVIRONMENT);
    let what = format!("the run in the background ended before it recorded anything ({status})");
    Err(Complaint::new(exit, what)
        .why(said)
        .todo(format!("see all that it said: {}", log.path.display()))
        .todo("run it in the terminal, without --detach"))
}

/// The log to which background commands write what they would print on a terminal.
struct Log {
    path: PathBuf,
    file: File,
    /// The offset at which the output of this child begins.
    from: u64,
}

impl Log {
    fn open(folder: &Path) -> Result<Log, Complaint> {
        fs::create_dir_all(folder).map_err(|cause| failed(&folder.display().to_string(), &cause))?;
        let path = folder.join(LOG);
        let opened = fs::OpenOptions::new().create(true).append(true).read(true).open(&path);
        // Several children append to one log; what was there before belongs to others.
        let opened = opened.and_then(|file| Ok((file.metadata()?.len(), file)));
        let (from, file) = opened.map_err(|cause| failed(&path.display().to_string(), &cause))?;
        Ok(Log { path, file, from })
    }

    /// Another handle to the log, for the child.
    fn share(&self) -> Result<File, Complaint> {
        self.file.try_clone().map_err(|cause| failed(&self.path.display().to_string(), &cause))
    }

    /// The last lines that were written since the log was opened; empty if it cannot be read.
    fn tail(&mut self) -> String {
        let length = self.file.metadata().map_or(0, |meta| meta.len());
        let start = self.from.max(length.saturating_sub(TAIL_BYTES));
        let mut bytes = Vec::new();
        let read = self.file.seek(SeekFrom::Start(start)).and_then(|_| self.file.read_to_end(&mut bytes));
        if read.is_err() {
            return String::new();
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].iter().map(|line| format!("{line}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(typed: &[&str]) -> Vec<String> {
        let words = arguments(typed.iter().map(OsString::from));
        words.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn only_our_flag_is_left_out_and_files_stay_files() {
        assert_eq!(told(&["review", "a.md", "--detach"]), ["--json", "review", "a.md"]);
        assert_eq!(told(&["--json", "review", "--detach", "a.md"]), ["--json", "review", "a.md"]);
        assert_eq!(
            told(&["review", "--detach", "--", "plan.md", "--detach", "--json"]),
            ["--json", "review", "--", "plan.md", "--detach", "--json"]
        );
        assert_eq!(told(&["review", "--section", "--detach"]), ["--json", "review", "--section"]);
    }

    fn heard(script: &str) -> Heard {
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let heard = listen(&mut child).unwrap();
        child.wait().unwrap();
        heard
    }

    #[test]
    fn the_run_or_the_complaint_is_found_behind_whatever_else_is_said() {
        assert!(
            matches!(heard("echo hello; echo; echo '{\"run\":\"a-1\"}'"), Heard::Run { run, .. } if run == "a-1")
        );
        let complaint = Complaint::new(5, "no room").why("so it is").todo("make some").json();
        let Heard::Complaint(complaint) = heard(&format!("printf '\\377\\n'; echo '{complaint}'")) else {
            panic!("it complained")
        };
        assert_eq!((complaint.exit, complaint.what.as_str()), (5, "no room"));
        assert!(matches!(heard("echo hello"), Heard::Nothing));
        // One of several runs could not start.
        let Heard::Run { run, before } =
            heard(&format!("echo '{}'; echo '{{\"run\":\"b-2\"}}'", complaint.json()))
        else {
            panic!("one runs")
        };
        assert_eq!((run.as_str(), before.len()), ("b-2", 1));
    }

    #[test]
    fn who_ends_without_a_word_is_quoted_from_the_log() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("detached.log"), "of an earlier one\n").unwrap();
        let ended = |script: &str| {
            let mut log = Log::open(folder.path()).unwrap();
            let mut command = Command::new("sh");
            let mut child = command.args(["-c", script]).stderr(log.share().unwrap()).spawn().unwrap();
            ended_early(&mut child, &mut log)
        };
        let complaint = ended("seq 1 12 >&2; echo 'bad luck' >&2; exit 4").unwrap_err();
        assert_eq!(complaint.exit, 4);
        assert!(
            complaint.why.starts_with("4\n5\n") && complaint.why.ends_with("12\nbad luck\n"),
            "{complaint}"
        );
        assert_eq!(ended("kill -9 $$").unwrap_err().exit, ENVIRONMENT);
        assert_eq!(ended("exit 0").unwrap(), 0);
    }
}
