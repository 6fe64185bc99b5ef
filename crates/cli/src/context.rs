//! What the program was given: directory, terminal, environment. They are read only here; `settings` decides what they mean
//! for settings.

use std::{
    env,
    ffi::OsString,
    io::{IsTerminal, Write, stderr, stdin, stdout},
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use tribunal_agents::driver::Whereabouts;
use tribunal_core::ids::RunId;
use tribunal_report::Screen;
use tribunal_runner::{Project, mask::Masker};
use tribunal_store::{Store, StoreError};

use crate::{
    Colour,
    complaint::{Complaint, ENVIRONMENT},
};

/// Everything that a command knows about its surroundings.
#[derive(Debug)]
pub(crate) struct Context {
    folder: PathBuf,
    /// The project that was named with `-C`.
    named: Option<PathBuf>,
    pub json: bool,
    /// The screen for answers, on standard output.
    pub answers: Screen,
    /// The screen for progress, on standard error.
    pub progress: Screen,
    pub interactive: bool,
    /// Whether standard error is a terminal whose cursor can be moved.
    pub paintable: bool,
}

impl Context {
    pub fn new(named: Option<PathBuf>, json: bool, colour: Colour) -> Result<Context, Complaint> {
        let folder = env::current_dir().map_err(|cause| {
            Complaint::new(ENVIRONMENT, format!("the folder you are in cannot be used: {cause}"))
                .todo("cd to a folder that exists")
        })?;
        if let Some(named) = named.as_ref().filter(|named| !named.is_dir()) {
            return Err(Complaint::usage(format!("{} is not a folder", named.display()))
                .todo("check the path after -C; it is looked up from the folder you are in"));
        }
        // An unset TERM may still be a terminal that shows colours, but its cursor cannot be relied on.
        let dumb = env::var_os("TERM").is_none_or(|value| value.is_empty() || value == "dumb");
        let quiet = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env::var_os("TERM").is_some_and(|value| value == "dumb");
        // Hints must work when they are copied, so they repeat `-C`.
        let program = match &named {
            Some(named) => format!("tribunal -C {}", quoted(&named.to_string_lossy())),
            None => "tribunal".to_string(),
        };
        let screen = |terminal: bool, width: Option<usize>| Screen {
            program: program.clone(),
            colour: match colour {
                Colour::Always => true,
                Colour::Never => false,
                // `--color` wins over the environment.
                Colour::Auto => terminal && !quiet,
            },
            width,
        };
        Ok(Context {
            folder,
            named,
            json,
            answers: screen(stdout().is_terminal(), width(stdout())),
            progress: screen(stderr().is_terminal(), width(stderr())),
            interactive: stderr().is_terminal(),
            paintable: stderr().is_terminal() && !dumb,
        })
    }

    /// The project that is meant if no path says so.
    pub fn project(&self) -> Project {
        match &self.named {
            Some(named) => Project::at(self.folder.join(named)),
            None => Project::around(&self.folder),
        }
    }

    /// The project that a path belongs to.
    pub fn project_of(&self, path: &Path) -> Project {
        // The directory is resolved, but the file is not: a link that leads out of its project must not change the project.
        let folder = path.parent().map_or_else(|| self.folder.clone(), |folder| self.folder.join(folder));
        match (&self.named, folder.canonicalize()) {
            // A user who is in a project and names a file outside of any project means a file outside of this one.
            (None, Ok(folder)) if Project::is_marked(&folder) || !Project::is_marked(&self.folder) => {
                Project::around(&folder)
            }
            _ => self.project(),
        }
    }

    /// Resolves a path from the current directory.
    pub fn path(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }

    /// Opens the journal for reading. `None` if the project has none yet.
    pub fn journal(&self, project: &Project) -> Result<Option<Store>, Complaint> {
        if !Store::exists(&project.home()) {
            return Ok(None);
        }
        let store = match Store::open_read_only(&project.home()) {
            // A journal without any run counts as none.
            Err(StoreError::Empty { .. }) => return Ok(None),
            other => other?,
        };
        if let Some(newer) = store.is_newer() {
            // Reading goes on without what this version does not know.
            writeln!(stderr(), "[W] {newer}")?;
        }
        Ok(Some(store))
    }

    /// Finds the run that the user means, with its journal: the named one, or the last.
    pub fn run_meant(&self, project: &Project, said: Option<&str>) -> Result<(Store, RunId), Complaint> {
        let none =
            || Complaint::usage("this project has no runs yet").todo("start one: tribunal review FILE");
        let store = self.journal(project)?.ok_or_else(none)?;
        let run = match said {
            Some(said) => find_run(&store, said)?,
            None => store.runs()?.pop().ok_or_else(none)?,
        };
        Ok((store, run))
    }

    /// Returns whether the user can be asked something before a command starts.
    pub fn can_ask(&self) -> bool {
        self.interactive && !self.json && stdin().is_terminal()
    }

    /// Reads an environment variable.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        env::var_os(name)
    }

    /// The directory for what belongs to the user and to no project.
    pub fn state_home(&self) -> Result<PathBuf, Complaint> {
        base_folder("XDG_STATE_HOME", ".local/state").map(|home| home.join("tribunal")).ok_or_else(|| {
            Complaint::new(ENVIRONMENT, "there is no place for what you trusted: HOME is not set")
                .why("It is kept outside the project, so that no project can say of itself that it is trusted. Nothing was started.")
                .todo("name a folder: export XDG_STATE_HOME=/path/to/a/folder")
        })
    }

    pub fn masker(&self) -> Masker {
        masker()
    }

    /// The path of our own program, if typing its name would not find it.
    pub fn own_program_off_path(&self) -> Option<PathBuf> {
        let own = env::current_exe().ok()?;
        let found = env::split_paths(&env::var_os("PATH")?).any(|folder| folder.join("tribunal").is_file());
        (!found).then_some(own)
    }

    /// What drivers need to know to launch agents.
    pub fn whereabouts(&self, project: &Project) -> Result<Whereabouts, Complaint> {
        let own = env::current_exe().map_err(|cause| {
            // Drivers may start our own program, for instance to play a script.
            Complaint::new(ENVIRONMENT, format!("own program not found: {cause}"))
                .todo("start tribunal by its full path")
        })?;
        let client_settings = crate::clients::all_settings(&|name| env::var_os(name));
        let project = project.root().to_path_buf();
        Ok(Whereabouts { own_program: own, project, client_settings })
    }
}

/// Makes the masker for secrets in variables. Compiling it takes a moment, so only commands that run something do it.
pub(crate) fn masker() -> Masker {
    let variables = variables_with("");
    Masker::new(variables.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// The variables whose names begin with `name_prefix`, as far as they are UTF-8.
pub(crate) fn variables_with(prefix: &str) -> Vec<(String, String)> {
    let variables = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    variables.filter(|(name, _)| name.starts_with(prefix)).collect()
}

/// The path of the user's own settings, whether the file exists or not.
pub(crate) fn user_settings_file() -> Option<PathBuf> {
    base_folder("XDG_CONFIG_HOME", ".config").map(|home| home.join("tribunal/settings.yaml"))
}

/// The named directory, or one below the home directory. A relative path counts as unset, as the XDG convention says.
fn base_folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(below_home)))
}

/// Quotes an argument for a shell, if it needs that.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The width of a terminal; `None` if it is not one.
fn width(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Finds a run by its id, or by a part of it that only one run has.
pub(crate) fn find_run(store: &Store, said: &str) -> Result<RunId, Complaint> {
    let runs = store.runs()?;
    // An exact id wins, even if it is also a part of another one.
    if let Some(run) = runs.iter().find(|run| run.as_str() == said) {
        return Ok(run.clone());
    }
    let fitting: Vec<&RunId> = runs.iter().filter(|run| run.as_str().contains(said)).collect();
    match fitting.as_slice() {
        [run] => Ok((*run).clone()),
        [] => Err(Complaint::usage(format!("there is no run {said} in this project")).todo("tribunal runs")),
        several => {
            let names: Vec<&str> = several.iter().map(|run| run.as_str()).collect();
            Err(Complaint::usage(format!("`{said}` fits several runs: {}", names.join(", ")))
                .todo("type more of its name"))
        }
    }
}
