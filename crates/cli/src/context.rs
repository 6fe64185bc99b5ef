//! What the program was given: folder, terminal, environment. Only here are they looked at; what they mean for settings is
//! `settings`' business.

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

#[derive(Debug)]
pub(crate) struct Context {
    folder: PathBuf,
    /// Named with `-C`.
    named: Option<PathBuf>,
    pub json: bool,
    /// For answers, on standard output.
    pub answers: Screen,
    /// For progress, on standard error.
    pub progress: Screen,
    pub interactive: bool,
    /// Standard error is a terminal on which a cursor can be moved.
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
        let dumb = env::var_os("TERM").is_none_or(|value| value.is_empty() || value == "dumb");
        let quiet = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env::var_os("TERM").is_some_and(|value| value == "dumb");
        let program = match &named {
            Some(named) => format!("tribunal -C {}", quoted(&named.to_string_lossy())),
            None => "tribunal".to_string(),
        };
        let screen = |terminal: bool, width: Option<usize>| Screen {
            program: program.clone(),
            colour: match colour {
                Colour::Always => true,
                Colour::Never => false,
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

    /// The project that is meant when only the folder says so.
    pub fn project(&self) -> Project {
        match &self.named {
            Some(named) => Project::at(self.folder.join(named)),
            None => Project::around(&self.folder),
        }
    }

    /// The project that a path belongs to.
    pub fn project_of(&self, path: &Path) -> Project {
        // The folder is resolved, the file is not: a link that leads out of its project must not take the project with it.
        let folder = path.parent().map_or_else(|| self.folder.clone(), |folder| self.folder.join(folder));
        match (&self.named, folder.canonicalize()) {
            // Who is in a project and names a file of none means a file that is outside of it.
            (None, Ok(folder)) if Project::is_marked(&folder) || !Project::is_marked(&self.folder) => {
                Project::around(&folder)
            }
            _ => self.project(),
        }
    }

    pub fn path(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }

    /// The journal for reading. None: the project has none yet.
    pub fn journal(&self, project: &Project) -> Result<Option<Store>, Complaint> {
        if !Store::exists(&project.home()) {
            return Ok(None);
        }
        let store = match Store::open_read_only(&project.home()) {
            Err(StoreError::Empty { .. }) => return Ok(None),
            other => other?,
        };
        if let Some(newer) = store.is_newer() {
            // Reading degrades: what this version does not know is left out.
            writeln!(stderr(), "[W] {newer}")?;
        }
        Ok(Some(store))
    }

    /// The run a person means, with the journal it is in: the named one, else the last.
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

    /// Whether somebody can be asked something before a command starts.
    pub fn can_ask(&self) -> bool {
        self.interactive && !self.json && stdin().is_terminal()
    }

    /// A variable of the environment.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        env::var_os(name)
    }

    /// Where things are kept that belong to the person and to no project.
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

    /// Where our own program is, if typing its name would not find it.
    pub fn own_program_off_path(&self) -> Option<PathBuf> {
        let own = env::current_exe().ok()?;
        let found = env::split_paths(&env::var_os("PATH")?).any(|folder| folder.join("tribunal").is_file());
        (!found).then_some(own)
    }

    pub fn whereabouts(&self, project: &Project) -> Result<Whereabouts, Complaint> {
        let own = env::current_exe().map_err(|cause| {
            Complaint::new(ENVIRONMENT, format!("own program not found: {cause}"))
                .todo("start tribunal by its full path")
        })?;
        let client_settings = crate::clients::all_settings(&|name| env::var_os(name));
        let project = project.root().to_path_buf();
        Ok(Whereabouts { own_program: own, project, client_settings })
    }
}

/// What hides the secrets that variables have. Compiling it takes a moment; only commands that run need it.
pub(crate) fn masker() -> Masker {
    let variables = variables_with("");
    Masker::new(variables.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// The variables whose names begin with `prefix`, as far as they are text.
pub(crate) fn variables_with(prefix: &str) -> Vec<(String, String)> {
    let variables = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    variables.filter(|(name, _)| name.starts_with(prefix)).collect()
}

/// The person's own settings, whether there is such a file or not.
pub(crate) fn user_settings_file() -> Option<PathBuf> {
    base_folder("XDG_CONFIG_HOME", ".config").map(|home| home.join("tribunal/settings.yaml"))
}

/// The named folder, else one below the home directory. A relative path counts as unset, as the convention says.
fn base_folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(below_home)))
}

/// As a shell would want it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn width(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// The run a person means: its id, or a part of it that only one run has.
pub(crate) fn find_run(store: &Store, said: &str) -> Result<RunId, Complaint> {
    let runs = store.runs()?;
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
