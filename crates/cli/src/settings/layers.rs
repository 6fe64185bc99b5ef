//! The layers of settings, in the order in which they win: built-in defaults, the user's file, BMAD's file, the project's
//! file, the environment, flags. Every value keeps its origin.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use tribunal_bmad::CONFIG_PATH;

use super::{
    kind::Value,
    nearest,
    origin::{Layer, Origin},
    read::{self, Manner, Problem, Reading},
    table::{self, NAME},
    typed::TypedSettings,
};
use crate::complaint::Complaint;

/// The name of the settings file in a project's root.
pub(crate) const FILE: &str = "tribunal.yaml";

/// The sources besides the project; see `context`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// The user's own file, whether it exists or not.
    pub user_file: Option<PathBuf>,
    /// Variables whose names begin with [`VARIABLE_PREFIX`].
    pub variables: Vec<(String, String)>,
    pub flags: Vec<Flag>,
}

/// One setting from the command line.
#[derive(Clone, Debug)]
pub(crate) struct Flag {
    /// The flag as it was typed, for instance `--tier`.
    pub name: String,
    pub path: String,
    pub text: String,
}

/// The prefix of variables that are settings.
pub(crate) const PREFIX: &str = "TRIBUNAL_";

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    pub value: Value,
    pub origin: Origin,
}

/// The result of all layers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effective {
    pub values: BTreeMap<String, Setting>,
    /// Whether the project has BMAD's file.
    pub bmad: bool,
}

impl Effective {
    /// The built-in defaults.
    pub fn defaults() -> Effective {
        let mut effective = Effective::default();
        let origin = || Origin { layer: Layer::Default, name: String::new(), line: None };
        let defaults = TypedSettings::default();
        for row in table::rows() {
            if let Some(value) = row.default_in(&defaults) {
                effective.values.insert(row.path.to_string(), Setting { value, origin: origin() });
            }
        }
        effective
    }

    /// Every value in the field that its setting fills. Fields of unset settings keep their defaults.
    pub fn typed(&self) -> TypedSettings {
        let mut typed = TypedSettings::default();
        for row in table::rows() {
            if let Some(value) = self.get(row.path) {
                row.apply(value, &mut typed);
            }
        }
        typed
    }

    /// Adds the settings of a file; they replace those of weaker layers.
    pub(super) fn take(&mut self, layer: Layer, file: &str, reading: Reading) {
        // A layer that defines an agent defines all of it: keys of another definition with the same name must not mix in.
        let agents: Vec<String> =
            reading.found.iter().filter_map(|found| agent_prefix(&found.path)).collect();
        // The old keys go before the new ones come, in one step for all agents of the file.
        self.values.retain(|path, _| !agents.iter().any(|agent| path.starts_with(agent)));
        for found in reading.found {
            let origin = Origin { layer, name: file.to_string(), line: Some(found.line) };
            self.values.insert(found.path, Setting { value: found.value, origin });
        }
    }

    pub fn get(&self, path: &str) -> Option<&Value> {
        self.values.get(path).map(|setting| &setting.value)
    }

    pub fn origin(&self, path: &str) -> Option<&Origin> {
        self.values.get(path).map(|setting| &setting.origin)
    }
}

/// The text at a path, if it is set to one.
pub(super) fn text<'a>(effective: &'a Effective, path: &str) -> Option<&'a str> {
    match effective.get(path) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

/// The list at a path; empty if it is not set.
pub(super) fn list(effective: &Effective, path: &str) -> Vec<String> {
    match effective.get(path) {
        Some(Value::List(list)) => list.clone(),
        _ => Vec::new(),
    }
}

/// Describes where a setting was set.
pub(super) fn place(effective: &Effective, path: &str) -> String {
    effective.origin(path).map_or_else(|| "the settings".to_string(), ToString::to_string)
}

/// The prefix of an agent's settings: `agents.mine.` for `agents.mine.argv`.
fn agent_prefix(path: &str) -> Option<String> {
    let (name, _) = path.strip_prefix("agents.")?.split_once('.')?;
    Some(format!("agents.{name}."))
}

/// Folds all layers. All problems of all of them become one error.
pub(crate) fn gather(root: &Path, given: &Given) -> Result<Effective, Complaint> {
    fold(Some(root), given)
}

/// The settings of one text alone, as if it were the project's file.
pub(super) fn of_text(name: &str, text: &str) -> Effective {
    let mut effective = Effective::default();
    effective.take(Layer::Project, name, read::read(name, text, Manner::Strict));
    effective
}

/// Only what the user set outside any project.
pub(crate) fn of_the_person(given: &Given) -> Result<Effective, Complaint> {
    fold(None, given)
}

/// Folds the layers, with the project's files if there is a root.
fn fold(root: Option<&Path>, given: &Given) -> Result<Effective, Complaint> {
    let mut effective = Effective::defaults();
    let mut problems = Vec::new();
    // The order of this list is the order in which the layers win.
    let files = [
        (Layer::User, given.user_file.clone(), Manner::Strict),
        (Layer::Bmad, root.map(|root| root.join(CONFIG_PATH)), Manner::Lenient),
        (Layer::Project, root.map(|root| root.join(FILE)), Manner::Strict),
    ];
    for (layer, path, manner) in files {
        // A missing file is an empty layer.
        let Some((name, text)) = path.map(|path| text_of(&path)).transpose()?.flatten() else { continue };
        let mut reading = read::read(&name, &text, manner);
        problems.append(&mut reading.problems);
        effective.bmad |= layer == Layer::Bmad;
        effective.take(layer, &name, reading);
        // Problems are collected, not returned at once: the user wants to see all of them.
    }
    for (name, text) in &given.variables {
        variable(&mut effective, name, text, &mut problems);
    }
    for flag in &given.flags {
        set(&mut effective, flag, &mut problems);
    }
    match read::complaint(&problems) {
        Some(complaint) => Err(complaint),
        None => Ok(effective),
    }
}

/// Reads a settings file. `None` if it does not exist.
pub(super) fn text_of(path: &Path) -> Result<Option<(String, String)>, Complaint> {
    let name = path.display().to_string();
    let odd = |what: &str| {
        Complaint::usage(format!("{name} {what}"))
            .why("Nothing was started.")
            .todo("make it a readable UTF-8 file, or remove it")
    };
    // Reading a pipe would never end, and a dangling link was meant to lead somewhere.
    match (fs::metadata(path), fs::symlink_metadata(path)) {
        (Ok(meta), _) if !meta.is_file() => return Err(odd("is not a file")),
        (Err(_), Ok(_)) => return Err(odd("is a link that leads nowhere")),
        _ => {}
    }
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some((name, text))),
        Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(cause) => Err(Complaint::usage(format!("{name} cannot be read: {cause}"))
            .why("Nothing was started.")
            .todo("make it a readable UTF-8 file, or remove it")),
    }
}

/// Applies a variable: `TRIBUNAL_LIMITS__MAX_COST` is `limits.max_cost`. A name without `__` that is no setting is ignored.
pub(super) fn variable(effective: &mut Effective, name: &str, text: &str, problems: &mut Vec<Problem>) {
    let Some(rest) = name.strip_prefix(PREFIX) else { return };
    let said = rest.to_lowercase().replace("__", ".");
    // Names of variables are upper case, so paths with capitals are compared without case.
    let known = table::rows().find(|row| row.path.to_lowercase() == said).map(|row| row.path.to_string());
    let path = known.or_else(|| table::at(&said).map(|_| said.clone()));
    match path {
        Some(path) => {
            let origin = Origin { layer: Layer::Environment, name: name.to_string(), line: None };
            put(effective, &path, text, origin, problems);
        }
        // Other programs may use the prefix, too; only a double underscore shows that a setting is meant.
        None if !rest.contains("__") => {}
        None => {
            let variables: Vec<String> = table::rows()
                .filter(|row| !row.path.contains(NAME))
                .map(|row| variable_for(row.path))
                .collect();
            let names: Vec<&str> = variables.iter().map(String::as_str).collect();
            let near = nearest(name, &names).map(|near| format!("did you mean `{near}`?"));
            problems.push(Problem {
                place: format!("environment variable {name}"),
                line: None,
                what: format!("there is no setting `{said}`"),
                stands: None,
                hint: near.or_else(|| Some(format!("remove it: unset {name}"))),
            });
        }
    }
}

/// The name of a setting's variable.
pub(crate) fn variable_for(path: &str) -> String {
    format!("{PREFIX}{}", path.to_uppercase().replace('.', "__"))
}

/// Applies a flag.
fn set(effective: &mut Effective, flag: &Flag, problems: &mut Vec<Problem>) {
    let origin = Origin { layer: Layer::Flags, name: flag.name.clone(), line: None };
    if table::at(&flag.path).is_some() {
        return put(effective, &flag.path, &flag.text, origin, problems);
    }
    let paths: Vec<&str> = table::rows().map(|row| row.path).filter(|path| !path.contains(NAME)).collect();
    let (above, key) = flag.path.rsplit_once('.').unwrap_or(("", &flag.path));
    let (what, hint) = read::unknown(above, key);
    // The whole path is compared first; the key alone may exist in several sections.
    let near = nearest(&flag.path, &paths).map(|near| format!("did you mean `{near}`?"));
    problems.push(Problem { place: flag.name.clone(), line: None, what, stands: None, hint: near.or(hint) });
}

/// Applies the text of a variable or a flag.
fn put(effective: &mut Effective, path: &str, text: &str, origin: Origin, problems: &mut Vec<Problem>) {
    let Some((spelling, canonical)) = table::at(path) else { return };
    match spelling.kind.read_given(text) {
        Ok(Some(value)) => {
            effective.values.insert(canonical, Setting { value, origin });
        }
        // The text leaves the choice to Tribunal, as `auto-suggest` does.
        Ok(None) => {}
        Err(slip) => problems.push(Problem {
            place: origin.name,
            line: None,
            what: format!("`{path}` is {}; allowed is {}", slip.stands, spelling.kind.allowed()),
            stands: None,
            hint: slip.hint,
        }),
    }
}
