//! `tribunal demo`: a full review with no account, no network and no set-up.

use std::{
    fs,
    io::{Write, stderr},
    path::{Path, PathBuf},
};

use tribunal_core::subject::Subject;
use tribunal_runner::Project;

use crate::{
    complaint::{Complaint, ENVIRONMENT},
    context::{Context, quoted},
    demo_project::{FILES, SUBJECT},
    running::{Ended, Job, execute},
    settings::{Resolved, Wishes, resolve},
    view::Progress,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where to put the demo project (new or empty); else a temporary folder
    #[arg(long)]
    dir: Option<PathBuf>,
    #[command(flatten)]
    progress: Progress,
}

pub(crate) fn run(arguments: Arguments, context: &Context) -> Result<u8, Complaint> {
    let folder = folder(arguments.dir, context)?;
    unpack(&folder).map_err(|cause| {
        Complaint::new(ENVIRONMENT, format!("the demo could not be put into {}: {cause}", folder.display()))
            .todo("name a folder that can be written: tribunal demo --dir DIR")
    })?;
    introduce(&folder, context)?;
    // The user's settings are left out on purpose: the demo shows the same to every user. Only the pace can be
    // changed.
    let wishes = Wishes { paced: Wishes::from_environment(context).paced, ..Wishes::default() };
    let Resolved { settings, share, .. } = resolve(&folder, Subject::at(SUBJECT, None), &wishes)?;
    let job = Job::Start(Box::new(settings));
    // From here on the demo is an ordinary run: the same executor, journal and reporters as a real review.
    let ended =
        execute(context, Project::at(&folder), job, arguments.progress.mode.unwrap_or_default(), share)?;
    if !context.json {
        look_around(&folder, &ended, context)?;
    }
    Ok(ended.exit)
}

fn look_around(folder: &Path, ended: &Ended, context: &Context) -> Result<(), Complaint> {
    let mut err = stderr().lock();
    let run = &ended.run;
    // A demo that was stopped has a journal like any other run, so it can be resumed.
    if ended.exit != 0 {
        let folder = quoted(&folder.to_string_lossy());
        writeln!(err, "\nGo on with it: cd {folder} && tribunal resume {run}")?;
        return Ok(());
    }
    writeln!(err, "\nNow look around:")?;
    writeln!(err, "  cd {}", quoted(&folder.to_string_lossy()))?;
    for (what, why) in [
        ("less _bmad-output/reviews/prd-issues.md", "the tracker: every finding, its evidence, its fix"),
        (&format!("tribunal findings {run}"), "the same in the terminal; --json for programs"),
        (&format!("tribunal log {run}"), "this run again, drawn from its journal"),
        ("tribunal demo --dir again", "kill it half-way, then: tribunal -C again resume"),
    ] {
        match context.progress.width {
            // The two columns need about 100 characters; below that, the purpose goes on a line of its own.
            Some(narrow) if narrow < 100 => writeln!(err, "  {what}\n{}", context.progress.wrap(6, why))?,
            _ => writeln!(err, "  {what:<42} {why}")?,
        }
    }
    // The commands above would fail when pasted, so the full path is shown.
    if let Some(program) = context.own_program_off_path() {
        writeln!(err, "(`tribunal` is not on your PATH; it is {})", program.display())?;
    }
    Ok(())
}

fn folder(named: Option<PathBuf>, context: &Context) -> Result<PathBuf, Complaint> {
    let Some(named) = named else {
        let made = tempfile::Builder::new().prefix("tribunal-demo-").tempdir();
        let made = made.map_err(|cause| {
            Complaint::new(ENVIRONMENT, format!("no temporary folder: {cause}"))
                .todo("name one: tribunal demo --dir DIR")
        })?;
        // The directory must outlive this process: the user is invited to look around in it.
        return Ok(made.keep());
    };
    let folder = context.path(&named);
    // A directory that cannot be listed counts as occupied: nothing that belongs to the user may be overwritten.
    let taken = match fs::read_dir(&folder) {
        Ok(mut items) => items.next().is_some(),
        Err(_) => folder.exists(),
    };
    if taken {
        return Err(Complaint::usage(format!("{} is not empty", named.display()))
            .why("The demo writes a project of its own and touches nothing that is yours.")
            .todo("name a new folder: tribunal demo --dir DIR"));
    }
    Ok(folder)
}

fn unpack(folder: &Path) -> std::io::Result<()> {
    for (path, text) in FILES {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}

fn introduce(folder: &Path, context: &Context) -> Result<(), Complaint> {
    // Programs have no use for an introduction.
    if context.json {
        return Ok(());
    }
    let mut err = stderr().lock();
    let text = "This is a demo. The agents are scripted: they play demo/court.yaml, no model is asked, and tokens and \
                costs are made up. The rest is real: processes, journal, checks, fixes.";
    writeln!(err, "{}", context.progress.wrap(0, text))?;
    writeln!(err, "The project is in {}\n", folder.display())?;
    Ok(())
}
