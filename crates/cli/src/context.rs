//! What the program was given: directory, terminal, environment. They are read only here; `settings` decides what they mean
//! for settings.

use std::{
    cell::{Cell, OnceCell},
    env,
    ffi::OsString,
    io::{IsTerminal, Write, stderr, stdin, stdout},
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use tribunal_agents::driver::{LaunchEnv, UserDirs};
use tribunal_engine::{ids::RunId, text::shell_quote};
use tribunal_report::{Screen, escape_line};
use tribunal_runner::{
    Project,
    housekeeping::discarded_runs::list_discarded,
    masking::{Masker, read_client_values},
};
use tribunal_store::{Store, StoreError};
use tribunal_supervise::search_dirs;
use tribunal_workflows::runs::{kinds::RunOrder, run_kind::RunDriver, types::RunEvent, view::RunView};

use crate::{
    ColourChoice,
    messages::user_errors::{EXIT_ENVIRONMENT, UserError},
};

/// Everything that a command knows about its surroundings.
#[derive(Debug)]
pub(crate) struct CommandContext {
    current_directory: PathBuf,
    /// The project that was named with `-C`.
    named_project: Option<PathBuf>,
    pub wants_json: bool,
    /// The screen for answers, on standard output.
    pub answer_screen: Screen,
    /// The screen for progress, on standard error.
    pub progress_screen: Screen,
    pub is_interactive: bool,
    /// Whether standard error is a terminal whose cursor can be moved.
    pub can_repaint: bool,
    /// Whether only errors are printed. A command learns it from its own arguments and settings.
    is_silent: Cell<bool>,
    /// Its rules take long to compile.
    masker: OnceCell<Masker>,
}

impl CommandContext {
    pub fn new(
        named_project: Option<PathBuf>,
        wants_json: bool,
        colour_choice: ColourChoice,
    ) -> Result<CommandContext, UserError> {
        let current_directory = env::current_dir().map_err(|cause| {
            UserError::new(EXIT_ENVIRONMENT, format!("cannot access the current directory: {cause}"))
                .with_step("change to a directory that exists")
        })?;
        if let Some(named_project) = named_project.as_ref().filter(|named_project| !named_project.is_dir()) {
            return Err(UserError::usage(format!("{} is not a directory", named_project.display()))
                .with_step("check the path after `-C`; it is relative to the current directory"));
        }
        // An unset TERM may still be a terminal that shows colours, but its cursor cannot be relied on.
        let is_dumb = env::var_os("TERM").is_none_or(|value| value.is_empty() || value == "dumb");
        let has_no_colour = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env::var_os("TERM").is_some_and(|value| value == "dumb");
        // Hints must work when they are copied, so they repeat `-C`.
        let program_name = match &named_project {
            Some(named_project) => format!("tribunal -C {}", shell_quote(&named_project.to_string_lossy())),
            None => "tribunal".to_string(),
        };
        let make_screen = |is_terminal: bool, width: Option<usize>| Screen {
            program_name: program_name.clone(),
            use_colour: match colour_choice {
                ColourChoice::Always => true,
                ColourChoice::Never => false,
                // `--color` wins over the environment.
                ColourChoice::Auto => is_terminal && !has_no_colour,
            },
            max_columns: width,
            cuts_lines: false,
        };
        Ok(CommandContext {
            current_directory,
            named_project,
            wants_json,
            answer_screen: make_screen(stdout().is_terminal(), terminal_width(stdout())),
            progress_screen: make_screen(stderr().is_terminal(), terminal_width(stderr())),
            is_interactive: stderr().is_terminal(),
            can_repaint: stderr().is_terminal() && !is_dumb,
            is_silent: Cell::new(false),
            masker: OnceCell::new(),
        })
    }

    /// Leaves out notes, warnings and next steps from now on.
    pub fn silence_notices(&self) {
        self.is_silent.set(true);
    }

    pub fn is_silent(&self) -> bool {
        self.is_silent.get()
    }

    /// Prints a note for the user of a command that runs something.
    pub fn print_note(&self, note_text: &str) -> Result<(), UserError> {
        self.print_notice("note", note_text)
    }

    /// Prints a warning for the user of a command that runs something.
    pub fn print_warning(&self, warning_text: &str) -> Result<(), UserError> {
        self.print_notice("warning", warning_text)
    }

    fn print_notice(&self, notice_kind: &str, notice_text: &str) -> Result<(), UserError> {
        if !self.is_silent() {
            // Notices contain file names, which may contain anything.
            let notice_line = format!("{notice_kind}: {}", escape_line(notice_text));
            writeln!(stderr(), "{}", self.progress_screen.wrap_block(&notice_line))?;
        }
        Ok(())
    }

    /// Prints lines of an answer on standard output, wrapped to the terminal.
    pub fn print_answer(&self, answer_text: &str) -> Result<(), UserError> {
        writeln!(stdout(), "{}", self.answer_screen.wrap_block(answer_text))?;
        Ok(())
    }

    /// How the user starts this program for the same project: `tribunal`, with `-C DIR` if that was given.
    pub fn program_name(&self) -> &str {
        &self.answer_screen.program_name
    }

    /// The project that is meant if no path says so.
    pub fn current_project(&self) -> Project {
        match &self.named_project {
            Some(named_project) => Project::from_root(self.current_directory.join(named_project)),
            None => Project::find_around(&self.current_directory),
        }
    }

    /// The project that a path belongs to.
    pub fn project_of_path(&self, file_path: &Path) -> Project {
        // The directory is resolved, but the file is not: a link that leads out of its project must not change the project.
        let directory = file_path
            .parent()
            .map_or_else(|| self.current_directory.clone(), |parent| self.current_directory.join(parent));
        match (&self.named_project, directory.canonicalize()) {
            // A user who is in a project and names a file outside of any project means a file outside of this one.
            (None, Ok(directory))
                if Project::is_inside_project(&directory) || !Project::is_inside_project(&self.current_directory) =>
            {
                Project::find_around(&directory)
            }
            _ => self.current_project(),
        }
    }

    /// Resolves a path from the current directory.
    pub fn resolve_path(&self, relative_path: &Path) -> PathBuf {
        self.current_directory.join(relative_path)
    }

    /// Opens the journal for reading. `None` if the project has none yet.
    pub fn open_journal(&self, project: &Project) -> Result<Option<Store>, UserError> {
        if !Store::exists(&project.home_dir()) {
            return Ok(None);
        }
        let store = match Store::open_read_only(&project.home_dir()) {
            // A journal without any run counts as none.
            Err(StoreError::Empty { .. }) => return Ok(None),
            open_result => open_result?,
        };
        if let Some(newer_format) = store.newer_format_error() {
            // Reading goes on without what this version does not know.
            self.print_warning(&newer_format.to_string())?;
        }
        Ok(Some(store))
    }

    /// Finds the run that the user means, with its journal: the named one, or the last of any kind.
    pub fn find_requested_run(&self, project: &Project, typed_run: Option<&str>) -> Result<(Store, RunId), UserError> {
        // Without a name the user means the run that they started, not a child of it.
        self.find_requested_id(project, typed_run, |store, run_id| {
            Ok(RunView::from_entries(&store.last_entry_of(run_id, &["run_started"])?).parent.is_none())
        })
    }

    /// Finds the run that the user means, with its journal: the named one, or the last sprint or story that the user started, or the
    /// last run of any kind.
    pub fn find_reported_run(&self, project: &Project, typed_run: Option<&str>) -> Result<(Store, RunId), UserError> {
        let found_run = self.find_requested_id(project, typed_run, |store, run_id| {
            let run_view = RunView::from_entries(&store.last_entry_of(run_id, &["run_started"])?);
            let is_story = matches!(run_view.order, Some(RunOrder::Story(_) | RunOrder::Sprint(_)));
            Ok(is_story && run_view.parent.is_none())
        });
        match found_run {
            Err(_) if typed_run.is_none() => self.find_requested_run(project, None),
            found_run => found_run,
        }
    }

    /// Finds the run that the user means, with its journal: the named one, or the last that has changes or findings. A loop has
    /// neither.
    pub fn find_requested_work(&self, project: &Project, typed_run: Option<&str>) -> Result<(Store, RunId), UserError> {
        self.find_requested_id(project, typed_run, |store, run_id| {
            Ok(read_order(store, run_id)?.is_none_or(|order| order.run_driver() == RunDriver::Host))
        })
    }

    fn find_requested_id(
        &self,
        project: &Project,
        typed_name: Option<&str>,
        is_wanted: fn(&Store, &RunId) -> Result<bool, UserError>,
    ) -> Result<(Store, RunId), UserError> {
        let no_runs_error =
            || UserError::usage("this project has no runs yet").with_step("start one: `tribunal review FILE`");
        let store = self.open_journal(project)?.ok_or_else(no_runs_error)?;
        if let Some(typed_name) = typed_name {
            let run_id = find_run(&store, typed_name)?;
            return Ok((store, run_id));
        }
        // The last run, unless it is in the trash.
        let discarded_runs = list_discarded(project);
        for run_id in store.list_runs()?.into_iter().rev() {
            if !discarded_runs.contains_key(&run_id) && is_wanted(&store, &run_id)? {
                return Ok((store, run_id));
            }
        }
        if !discarded_runs.is_empty() {
            return Err(UserError::usage("all runs of this kind are in the trash")
                .with_step("list them: `tribunal runs --discarded`")
                .with_step("restore one: `tribunal discard --restore RUN`"));
        }
        Err(no_runs_error())
    }

    /// Returns whether the user can be asked something.
    pub fn can_ask(&self) -> bool {
        self.is_interactive && !self.wants_json && stdin().is_terminal()
    }

    /// Reads an environment variable.
    pub fn env_variable(&self, variable_name: &str) -> Option<OsString> {
        env::var_os(variable_name)
    }

    /// All environment variables whose names and values are text.
    pub fn text_variables(&self) -> std::collections::BTreeMap<String, String> {
        env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
    }

    /// The directory for what belongs to the user and to no project.
    pub fn state_home(&self) -> Result<PathBuf, UserError> {
        base_directory("XDG_STATE_HOME", ".local/state").map(|state_base| state_base.join("tribunal")).ok_or_else(
            || {
                UserError::new(EXIT_ENVIRONMENT, "cannot find out where trust is stored: HOME is not set")
                    .with_reason(
                        "Trust is stored outside the project, so that no project can declare itself trusted. \
                     Nothing was started.",
                    )
                    .with_step("set a directory: `export XDG_STATE_HOME=/path/to/a/directory`")
            },
        )
    }

    /// Masks what is known to be secret: values of the environment, and of the settings of clients.
    pub fn secret_masker(&self) -> Masker {
        let build_masker = || {
            let client_values = home_directory().map(|home| read_client_values(&home)).unwrap_or_default();
            let known_values = variables_with_prefix("").into_iter().chain(client_values).collect::<Vec<_>>();
            Masker::new(known_values.iter().map(|(name, value)| (name.as_str(), value.as_str())))
        };
        self.masker.get_or_init(build_masker).clone()
    }

    /// The path of our own program, if typing its name would not find it.
    pub fn own_program_off_path(&self) -> Option<PathBuf> {
        let own_program = env::current_exe().ok()?;
        let is_on_path = search_dirs(&env::var_os("PATH")?).any(|directory| directory.join("tribunal").is_file());
        (!is_on_path).then_some(own_program)
    }

    /// What drivers need to know to launch agents.
    pub fn launch_env(&self, project: &Project) -> Result<LaunchEnv, UserError> {
        let own_program = env::current_exe().map_err(|cause| {
            // Drivers may start our own program, for instance to play a script.
            UserError::new(EXIT_ENVIRONMENT, format!("cannot find the tribunal executable: {cause}"))
                .with_step("start tribunal by its full path")
        })?;
        let client_settings =
            crate::clients::installed_clients::all_client_settings(&|variable_name| env::var_os(variable_name));
        let project_root = project.root().to_path_buf();
        Ok(LaunchEnv { own_program, project_root, settings_by_client: client_settings, user_dirs: find_user_dirs() })
    }
}

/// Where the user keeps what agents need.
pub(crate) fn find_user_dirs() -> UserDirs {
    UserDirs {
        home: base_directory("HOME", ""),
        temporary: env::temp_dir(),
        programs: env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect(),
        cache: base_directory("XDG_CACHE_HOME", ".cache"),
        cargo: base_directory("CARGO_HOME", ".cargo"),
        by_client: crate::clients::installed_clients::all_client_dirs(&|variable_name| env::var_os(variable_name)),
    }
}

/// Makes the masker for secrets in variables. Compiling it takes a moment, so commands that mask nothing do not make one.
pub(crate) fn env_masker() -> Masker {
    let variables = variables_with_prefix("");
    Masker::new(
        variables.iter().map(|(variable_name, variable_value)| (variable_name.as_str(), variable_value.as_str())),
    )
}

/// The variables whose names begin with `name_prefix`, as far as they are UTF-8.
pub(crate) fn variables_with_prefix(name_prefix: &str) -> Vec<(String, String)> {
    let variables = env::vars_os().filter_map(|(variable_name, variable_value)| {
        Some((variable_name.into_string().ok()?, variable_value.into_string().ok()?))
    });
    variables.filter(|(variable_name, _)| variable_name.starts_with(name_prefix)).collect()
}

/// The path of the user's own settings, whether the file exists or not.
pub(crate) fn user_settings_file() -> Option<PathBuf> {
    base_directory("XDG_CONFIG_HOME", ".config").map(|config_home| config_home.join("tribunal/settings.yaml"))
}

/// The directory for clones in which agents develop, whether it exists or not.
pub(crate) fn clones_root() -> Option<PathBuf> {
    base_directory("XDG_CACHE_HOME", ".cache").map(|cache_home| cache_home.join("tribunal/workspaces"))
}

/// The user's home directory.
pub(crate) fn home_directory() -> Option<PathBuf> {
    env::var_os("HOME").map(PathBuf::from).filter(|home_path| home_path.is_absolute())
}

/// The named directory, or one below the home directory. A relative path counts as unset, as the XDG convention says.
pub(crate) fn base_directory(variable_name: &str, below_home: &str) -> Option<PathBuf> {
    let absolute_path = |path_variable: &str| {
        env::var_os(path_variable).map(PathBuf::from).filter(|variable_path| variable_path.is_absolute())
    };
    absolute_path(variable_name).or_else(|| absolute_path("HOME").map(|home_directory| home_directory.join(below_home)))
}

/// A screen as wide as the terminal of standard output, for texts that have no colour.
pub(crate) fn stdout_screen() -> Screen {
    Screen { max_columns: terminal_width(stdout()), ..Screen::default() }
}

/// A screen as wide as the terminal of standard error, for texts that have no colour.
pub(crate) fn stderr_screen() -> Screen {
    Screen { max_columns: terminal_width(stderr()), ..Screen::default() }
}

/// The width of a terminal; `None` if it is not one.
fn terminal_width(terminal_fd: impl AsFd) -> Option<usize> {
    let window_size = rustix::termios::tcgetwinsize(terminal_fd).ok()?;
    (window_size.ws_col > 0).then_some(usize::from(window_size.ws_col))
}

/// Finds a run by its id, or by a part of it that only one run has. A child run is also found as `PARENT/name`.
pub(crate) fn find_run(store: &Store, typed_run: &str) -> Result<RunId, UserError> {
    if let Some((typed_parent, child_name)) = typed_run.rsplit_once('/') {
        let parent_id = find_run(store, typed_parent)?;
        let parent_view = store.read_view(&parent_id)?;
        return match parent_view.children.get(child_name) {
            Some(standing) => Ok(standing.run.clone()),
            None => Err(UserError::usage(format!("run {parent_id} has no child run named `{child_name}`"))
                .with_step(format!("list its child runs: `tribunal status {parent_id}`"))),
        };
    }
    match match_name(&store.list_runs()?, typed_run) {
        NameMatch::Found(run_id) => Ok(run_id),
        NameMatch::Several(run_ids) => {
            let id_texts: Vec<&str> = run_ids.iter().map(RunId::as_str).collect();
            Err(UserError::usage(format!("`{typed_run}` matches several runs: {}", id_texts.join(", ")))
                .with_step("type more of the name"))
        }
        NameMatch::Missing => Err(UserError::usage(format!("no run named `{typed_run}` in this project"))
            .with_step("list all runs: `tribunal runs`")),
    }
}

/// Reads what a run was asked to do; `None` if this build does not have such runs.
pub(crate) fn read_order(store: &Store, run_id: &RunId) -> Result<Option<RunOrder>, UserError> {
    let start_entry = store.last_entry_of(run_id, &["run_started"])?;
    Ok(start_entry.and_then(|entry| match entry.event {
        RunEvent::RunStarted { order, .. } => Some(order),
        _ => None,
    }))
}

/// What a typed name leads to.
enum NameMatch {
    Found(RunId),
    Several(Vec<RunId>),
    Missing,
}

fn match_name(known_ids: &[RunId], typed_name: &str) -> NameMatch {
    // An exact id wins, even if it is also a part of another one.
    if let Some(run_id) = known_ids.iter().find(|run_id| run_id.as_str() == typed_name) {
        return NameMatch::Found(run_id.clone());
    }
    let matching_ids: Vec<RunId> =
        known_ids.iter().filter(|run_id| run_id.as_str().contains(typed_name)).cloned().collect();
    match matching_ids.as_slice() {
        [run_id] => NameMatch::Found(run_id.clone()),
        [] => NameMatch::Missing,
        _ => NameMatch::Several(matching_ids),
    }
}
