//! Which commands of a project may run here: the user is asked once for each, by content, and the answer is kept outside the
//! project.
//!
//! A cloned project, or a journal that came with it, can name any command. None of them runs before the user agrees. What the
//! user set in a file of their own, in variables or flags needs no consent; `replay` agents run only our own player, and a
//! client's own program on the path is the user's. What gives a client more rights (other tools, the project's own settings
//! for it, no permission checks) needs the same consent. A command that cannot be shown in full, because a part of it looks
//! like a secret, cannot be trusted. Whether a command is wise is not checked, and a trusted command may call a script that
//! changes later: the consent is to the command line, not to what it calls.

pub(crate) mod trust_item;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write, stderr},
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use tribunal_engine::{ids::Hash, text::shell_quote};
use tribunal_json::{Deserialize, Serialize};
use tribunal_report::escape_line;
use tribunal_runner::masking::Masker;
use tribunal_workflows::runs::settings::Settings;

use crate::{
    context::CommandContext,
    demo_project::bundled_items,
    messages::user_errors::{EXIT_ENVIRONMENT, UserError},
    settings::{SettingSources, gather_user_settings, user_item_hashes},
    terminal::prompt::{PromptInput, read_first_answer},
    trust::trust_item::TrustItem,
};

/// The items that the user trusts, by project.
#[derive(Debug)]
pub(crate) struct TrustStore {
    file_path: PathBuf,
    trust_file: TrustFile,
}

/// The content of the file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    schema: String,
    /// Hashes of items by the project's real path. The commands themselves are not stored, because they could contain a secret.
    projects: BTreeMap<String, BTreeSet<Hash>>,
}

const TRUST_SCHEMA: &str = "tribunal.trust-book/1";

impl TrustStore {
    pub fn open_default(command_context: &CommandContext) -> Result<TrustStore, UserError> {
        TrustStore::read_file(command_context.state_home()?.join("trust.json"))
    }

    fn read_file(file_path: PathBuf) -> Result<TrustStore, UserError> {
        let trust_file = match fs::read(&file_path) {
            Ok(file_bytes) => serde_json::from_slice(&file_bytes).map_err(|cause| cause.to_string()),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                Ok(TrustFile { schema: TRUST_SCHEMA.into(), projects: BTreeMap::new() })
            }
            Err(cause) => Err(cause.to_string()),
        };
        // An unknown format is not overwritten: a newer version may have written it.
        let trust_file = trust_file.and_then(|trust_file| match trust_file.schema.as_str() {
            TRUST_SCHEMA => Ok(trust_file),
            other_schema => Err(format!("unknown format `{other_schema}`")),
        });
        match trust_file {
            Ok(trust_file) => Ok(TrustStore { file_path, trust_file }),
            // An unreadable file is never treated as an empty one, or the user would be asked to trust everything again.
            Err(cause) => Err(UserError::new(
                EXIT_ENVIRONMENT,
                format!("{} cannot be read: {cause}", file_path.display()),
            )
            .with_reason(
                "It lists the commands that you trust. Without it, no command of a project runs. Nothing was started.",
            )
            .with_step(format!(
                "make it readable, or remove it and trust again: `rm {}`",
                shell_quote(&file_path.to_string_lossy())
            ))),
        }
    }

    /// Returns whether an item is trusted in this project.
    pub fn is_trusted(&self, project_root: &Path, trust_item: &TrustItem) -> bool {
        self.trust_file
            .projects
            .get(&project_key(project_root))
            .is_some_and(|trusted_hashes| trusted_hashes.contains(&trust_item.content_hash()))
    }

    /// Counts the trusted items of a project, even those that are no longer in its settings.
    pub fn count_trusted(&self, project_root: &Path) -> usize {
        self.trust_file.projects.get(&project_key(project_root)).map_or(0, BTreeSet::len)
    }

    /// Trusts items in a project.
    pub fn add_items<'a>(
        &mut self,
        project_root: &Path,
        items: impl IntoIterator<Item = &'a TrustItem>,
    ) -> Result<(), UserError> {
        let item_hashes = items.into_iter().map(TrustItem::content_hash);
        self.update_file(|pages| pages.projects.entry(project_key(project_root)).or_default().extend(item_hashes))
    }

    /// Forgets everything about a project and returns how many items were trusted.
    pub fn forget_project(&mut self, project_root: &Path) -> Result<usize, UserError> {
        let mut removed_count = 0;
        self.update_file(|pages| {
            removed_count =
                pages.projects.remove(&project_key(project_root)).map_or(0, |trusted_hashes| trusted_hashes.len())
        })?;
        Ok(removed_count)
    }

    /// Reads the file again, changes it and writes it under a lock, so that changes of another process are kept.
    fn update_file(&mut self, apply_change: impl FnOnce(&mut TrustFile)) -> Result<(), UserError> {
        let _alone = self.lock_file().map_err(|cause| self.write_error(&cause))?;
        self.trust_file = TrustStore::read_file(self.file_path.clone())?.trust_file;
        apply_change(&mut self.trust_file);
        self.write_file().map_err(|cause| self.write_error(&cause))
    }

    /// Takes the lock, which is held until the file is dropped. The trust file itself cannot be locked, because it is replaced.
    fn lock_file(&self) -> io::Result<fs::File> {
        let lock_path = self.file_path.with_extension("lock");
        fs::create_dir_all(lock_path.parent().unwrap_or(Path::new("/")))?;
        let open_result =
            fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(lock_path);
        let locked_file = open_result?;
        locked_file.lock()?;
        Ok(locked_file)
    }

    fn write_error(&self, cause: &io::Error) -> UserError {
        UserError::new(EXIT_ENVIRONMENT, format!("{} cannot be written: {cause}", self.file_path.display()))
            .with_reason("Your decision could not be saved. Nothing was started.")
            .with_step("make its directory writable, or set another one: `export XDG_STATE_HOME=/path/to/a/directory`")
    }

    /// Replaces the file atomically.
    fn write_file(&self) -> io::Result<()> {
        let directory = self.file_path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(directory)?;
        // Temporary files are created with access for their owner only.
        let mut temp_file = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer_pretty(&mut temp_file, &self.trust_file)?;
        writeln!(temp_file)?;
        temp_file.as_file().sync_all()?;
        temp_file.persist(&self.file_path).map_err(|persist_error| persist_error.error)?;
        // The rename itself has to be durable, too.
        fs::File::open(directory)?.sync_all()
    }
}

/// The key of a project: its real path. A path that is not UTF-8 is encoded, since two projects must never share a key.
fn project_key(project_root: &Path) -> String {
    let real_path = project_root.canonicalize().unwrap_or_else(|_| project_root.to_path_buf());
    match real_path.to_str() {
        Some(path_text) => path_text.to_string(),
        None => real_path
            .as_os_str()
            .as_bytes()
            .iter()
            .fold("bytes:".to_string(), |hex_key, byte| format!("{hex_key}{byte:02x}")),
    }
}

/// Finds the items that the user has not trusted here, each of them once.
pub(crate) fn find_untrusted<'a>(
    command_context: &CommandContext,
    project_root: &Path,
    items: &'a [TrustItem],
) -> Result<Vec<&'a TrustItem>, UserError> {
    let demo_items = bundled_items();
    let mut untrusted: Vec<&TrustItem> = Vec::new();
    for trust_item in items {
        if !demo_items.contains(trust_item) && !untrusted.contains(&trust_item) {
            untrusted.push(trust_item);
        }
    }
    // The store is opened only if there is something to look up.
    if !untrusted.is_empty() {
        let trust_store = TrustStore::open_default(command_context)?;
        untrusted.retain(|trust_item| !trust_store.is_trusted(project_root, trust_item));
    }
    Ok(untrusted)
}

/// Fails unless all items are trusted here. The user is asked once, if that is possible.
pub(crate) fn require_trust(
    command_context: &CommandContext,
    project_root: &Path,
    items: &[TrustItem],
) -> Result<(), UserError> {
    let untrusted = find_untrusted(command_context, project_root, items)?;
    if untrusted.is_empty() {
        return Ok(());
    }
    let masker = command_context.secret_masker();
    // The user must not agree to something that is not visible, so this comes before the question.
    if let Some(hiding_item) = untrusted.iter().find(|trust_item| trust_item.hides_part(&masker)) {
        return Err(secret_error(hiding_item, &masker));
    }
    if !command_context.can_ask() {
        return Err(untrusted_error(command_context, &untrusted, &masker));
    }
    if ask_user(&untrusted, &masker)? {
        return TrustStore::open_default(command_context)?.add_items(project_root, untrusted);
    }
    Err(UserError::usage("the project's commands are not trusted")
        .with_reason("Nothing was started.")
        .with_step(format!("list them: `{} trust --list`", command_context.progress_screen.program_name)))
}

/// Trusts what the user typed on the command line: the run is pinned to it, and resuming the run must not ask again. What is
/// in the user's own file or variables is recognised there and not stored.
pub(crate) fn trust_typed_items(command_context: &CommandContext, project_root: &Path, settings: &Settings) {
    let add_typed_items = || -> Result<(), UserError> {
        let mut run_items = TrustItem::from_settings(settings);
        let demo_items = bundled_items();
        let user_hashes = user_item_hashes(&gather_user_settings(&SettingSources::from_environment())?);
        run_items.retain(|item| !demo_items.contains(item) && !user_hashes.contains(&item.content_hash()));
        if run_items.is_empty() {
            return Ok(());
        }
        let mut trust_store = TrustStore::open_default(command_context)?;
        let masker = command_context.secret_masker();
        // A command with a secret is not stored: resuming refuses it and says where a secret belongs.
        run_items.retain(|item| !trust_store.is_trusted(project_root, item) && !item.hides_part(&masker));
        if run_items.is_empty() { Ok(()) } else { trust_store.add_items(project_root, &run_items) }
    };
    // Without a place to store it the question comes when the run is resumed; nothing is lost.
    let _ = add_typed_items();
}

/// The error for an item that is shown with a mask in it: it could be any command.
pub(crate) fn secret_error(hiding_item: &TrustItem, masker: &Masker) -> UserError {
    UserError::usage(format!("the settings contain what looks like a secret: {}", hiding_item.describe_masked(masker)))
        .with_reason("A command that cannot be shown in full cannot be trusted. Nothing was started.")
        .with_step("move it to an environment variable that the agent or the check reads itself")
}

/// The error for items that the user has not trusted.
fn untrusted_error(command_context: &CommandContext, untrusted: &[&TrustItem], masker: &Masker) -> UserError {
    let (message, pronoun) = match untrusted.len() {
        1 => ("this project would run a command that you have not trusted".to_string(), "It"),
        item_count => (format!("this project would run {item_count} commands that you have not trusted"), "They"),
    };
    let item_lines: String =
        untrusted.iter().map(|trust_item| format!("  {}\n", trust_item.describe_masked(masker))).collect();
    UserError::usage(message)
        .with_reason(format!(
            "{item_lines}{pronoun} came with the project and would run with your permissions. Nothing was started."
        ))
        .with_step(format!(
            "to allow this: `{} trust{}`",
            command_context.progress_screen.program_name,
            step_arguments(untrusted)
        ))
}

/// The arguments that name files of hooks: they are not settings, so `trust` has to be told about them.
fn step_arguments(untrusted: &[&TrustItem]) -> String {
    let mut arguments = String::new();
    for trust_item in untrusted {
        if let TrustItem::Hook { file_name, .. } = trust_item {
            let step_argument = format!(" --step {}", shell_quote(&escape_line(file_name)));
            if !arguments.contains(&step_argument) {
                arguments.push_str(&step_argument);
            }
        }
    }
    arguments
}

/// Shows the items and asks whether they may run. Call it only if the user can answer.
pub(crate) fn ask_user(items: &[&TrustItem], masker: &Masker) -> Result<bool, UserError> {
    let (heading, pronoun) = match items.len() {
        1 => ("This project came with a command that would run with your permissions:", "it"),
        _ => ("This project came with commands that would run with your permissions:", "them"),
    };
    writeln!(stderr(), "{heading}")?;
    for trust_item in items {
        writeln!(stderr(), "  {}", trust_item.describe_masked(masker))?;
    }
    loop {
        let prompt_text = format!("Trust {pronoun} in this project? [y/n/d/q]");
        let PromptInput::Line(typed_answer) = read_first_answer(&prompt_text)? else { return Ok(false) };
        match typed_answer.to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            // Nothing has started yet, so a no and quitting are the same here.
            "n" | "no" | "q" | "quit" => return Ok(false),
            "d" | "details" => print_details(items, masker)?,
            // Only a clear yes is a yes; anything else is asked about again.
            _ => writeln!(
                stderr(),
                "  y  trust {pronoun} and continue; you are asked again when a command changes\n  \
                   n  do not trust {pronoun}; nothing is started\n  \
                   d  show details\n  \
                   q  quit; nothing is started"
            )?,
        }
    }
}

/// Shows each item with all its parts, and what it is for.
fn print_details(items: &[&TrustItem], masker: &Masker) -> io::Result<()> {
    let mut error_output = stderr().lock();
    for trust_item in items {
        writeln!(error_output, "{}", trust_item.describe_masked(masker))?;
        for detail_line in trust_item.describe_details(masker) {
            writeln!(error_output, "  {detail_line}")?;
        }
    }
    writeln!(error_output, "Trust covers exactly these commands. A script that a command calls may still change later.")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tribunal_workflows::development::checks::CommandLine;

    use super::{trust_item::CommandPurpose, *};

    fn agent_item(argv: &[&str]) -> TrustItem {
        TrustItem::Agent { agent_name: "mine".into(), argv: argv.iter().map(|argument| argument.to_string()).collect() }
    }

    #[test]
    fn trust_is_for_one_command_in_one_project() {
        let directory = tempfile::tempdir().unwrap();
        let trust_path = directory.path().join("tribunal/trust.json");
        let (this_project, other_project) = (directory.path().join("here"), directory.path().join("there"));
        let mut trust_store = TrustStore::read_file(trust_path.clone()).unwrap();
        trust_store.add_items(&this_project, [&agent_item(&["a", "b"])]).unwrap();
        let trust_store = TrustStore::read_file(trust_path.clone()).unwrap();
        assert!(trust_store.is_trusted(&this_project, &agent_item(&["a", "b"])));
        assert!(!trust_store.is_trusted(&other_project, &agent_item(&["a", "b"])));
        assert!(!trust_store.is_trusted(&this_project, &agent_item(&["ab"])));
        assert!(!trust_store.is_trusted(&this_project, &agent_item(&["a", "b", "c"])));
        assert!(!trust_store.is_trusted(
            &this_project,
            &TrustItem::Command { purpose: CommandPurpose::Check, command: CommandLine::from_shell_line("a b") }
        ));
        assert_eq!(fs::metadata(&trust_path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn concurrent_writers_lose_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let trust_path = directory.path().join("tribunal/trust.json");
        let (this_project, other_project) = (directory.path().join("here"), directory.path().join("there"));
        let [mut first_store, mut second_store, mut third_store] =
            [0; 3].map(|_| TrustStore::read_file(trust_path.clone()).unwrap());
        first_store.add_items(&this_project, [&agent_item(&["a"])]).unwrap();
        second_store.add_items(&other_project, [&agent_item(&["b"])]).unwrap();
        assert_eq!(third_store.forget_project(&this_project).unwrap(), 1);
        let reread_store = TrustStore::read_file(trust_path).unwrap();
        assert_eq!((reread_store.count_trusted(&this_project), reread_store.count_trusted(&other_project)), (0, 1));
    }

    #[test]
    fn paths_that_are_not_utf8_have_distinct_keys() {
        let key_of_bytes = |bytes: &'static [u8]| project_key(Path::new(std::ffi::OsStr::from_bytes(bytes)));
        assert_eq!(key_of_bytes(b"/nowhere/\xc3\xa9"), "/nowhere/é");
        assert_eq!(key_of_bytes(b"/n\xff"), "bytes:2f6eff");
        assert_ne!(key_of_bytes(b"/nowhere/\xff"), key_of_bytes(b"/nowhere/\xfe"));
    }

    #[test]
    fn an_unreadable_trust_file_is_an_error_and_not_an_empty_store() {
        let directory = tempfile::tempdir().unwrap();
        let trust_path = directory.path().join("trust.json");
        for broken_text in ["{", "{\"schema\": \"other/1\", \"projects\": {}}", "[]"] {
            fs::write(&trust_path, broken_text).unwrap();
            let user_error = TrustStore::read_file(trust_path.clone()).unwrap_err();
            assert_eq!(user_error.exit_code, EXIT_ENVIRONMENT);
            assert!(user_error.message.contains("cannot be read"), "{user_error}");
        }
    }
}
