//! What all layers and the project come to for one run.

use std::path::{Component, Path};

use tribunal_core::{
    ids::{AgentName, Hash},
    level::{Goal, Level, Tier},
    limits::{Cost, Limits},
    settings::{AgentSpec, DriverSpec, Settings, TaskSettings},
    subject::Subject,
};

use super::{
    kind::Value,
    layers::{self, Effective, FILE, Flag, Given, Layer},
    nearest,
};
use crate::{complaint::Complaint, trust::Item};

/// What a person asked for on the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    pub given: Given,
    /// Scripts take their time: somebody is watching.
    pub paced: bool,
}

impl Wishes {
    /// A flag with a name of its own, for instance `--tier 3`.
    #[must_use]
    pub fn flag(mut self, name: &str, path: &str, text: Option<String>) -> Wishes {
        if let Some(text) = text {
            self.given.flags.push(Flag { name: name.to_string(), path: path.to_string(), text });
        }
        self
    }

    /// `--set KEY=VALUE`.
    pub fn set(mut self, pairs: &[String]) -> Result<Wishes, Complaint> {
        for pair in pairs {
            let (path, text) = pair.split_once('=').ok_or_else(|| {
                Complaint::usage(format!("--set {pair}: it has no value"))
                    .todo("write KEY=VALUE, for instance: --set limits.max_cost=2.50")
            })?;
            let flag =
                Flag { name: format!("--set {path}"), path: path.trim().into(), text: text.trim().into() };
            self.given.flags.push(flag);
        }
        Ok(self)
    }
}

/// Everything a command needs to know before it runs.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    /// What the run is pinned to.
    pub settings: Settings,
    /// How much is shown; not pinned, every life of a run may show as much as it likes.
    #[expect(dead_code, reason = "the view of a running run will take it from here")]
    pub progress: Mode,
    /// What would run, and came with the project.
    pub items: Vec<Item>,
}

/// How much is shown while a run works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    Silent,
    Summary,
    #[default]
    Streaming,
    Verbose,
}

pub(crate) fn resolve(root: &Path, subject: Subject, wishes: &Wishes) -> Result<Resolved, Complaint> {
    let effective = layers::gather(root, &wishes.given)?;
    let agents = agents(&effective, wishes.paced, root)?;
    let settings = Settings {
        subject,
        tier: u8::try_from(whole(&effective, "tier")).ok().and_then(Tier::new).unwrap_or_default(),
        level: level(&effective),
        goal: if is_word(&effective, "goal", "critical-only") { Goal::CriticalOnly } else { Goal::ZeroOpen },
        fix: !matches!(effective.get("fix"), Some(Value::Flag(false))),
        limits: limits(&effective),
        tasks: tasks(&effective),
        agents,
        verify: list(&effective, "verify"),
        reviews: reviews(&effective)?,
    };
    let items = items(&effective, &settings);
    Ok(Resolved { settings, progress: mode(&effective), items })
}

/// How much is shown, for commands that start nothing anew.
pub(crate) fn mode(effective: &Effective) -> Mode {
    match text(effective, "progress.mode") {
        Some("silent") => Mode::Silent,
        Some("summary") => Mode::Summary,
        Some("verbose") => Mode::Verbose,
        _ => Mode::Streaming,
    }
}

fn whole(effective: &Effective, path: &str) -> u64 {
    match effective.get(path) {
        Some(Value::Whole(number)) => *number,
        _ => 0,
    }
}

fn count(effective: &Effective, path: &str) -> u32 {
    u32::try_from(whole(effective, path)).unwrap_or(u32::MAX)
}

fn ms(effective: &Effective, path: &str) -> u64 {
    whole(effective, path).saturating_mul(1000)
}

fn text<'a>(effective: &'a Effective, path: &str) -> Option<&'a str> {
    match effective.get(path) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

fn is_word(effective: &Effective, path: &str, word: &str) -> bool {
    text(effective, path) == Some(word)
}

fn list(effective: &Effective, path: &str) -> Vec<String> {
    match effective.get(path) {
        Some(Value::List(list)) => list.clone(),
        _ => Vec::new(),
    }
}

fn level(effective: &Effective) -> Option<Level> {
    match text(effective, "level")? {
        "minimal" => Some(Level::Minimal),
        "dual" => Some(Level::Dual),
        _ => Some(Level::Full),
    }
}

fn limits(effective: &Effective) -> Limits {
    Limits {
        rounds: count(effective, "limits.max_review_rounds"),
        fix_iterations: count(effective, "limits.max_fix_iterations"),
        failures: count(effective, "limits.max_failures"),
        findings: count(effective, "limits.max_findings"),
        runtime_ms: ms(effective, "limits.max_runtime_minutes"),
        cost: match effective.get("limits.max_cost") {
            Some(Value::Real(amount)) => Cost::of(*amount),
            _ => Cost::default(),
        },
        tokens: whole(effective, "limits.max_tokens"),
    }
}

fn tasks(effective: &Effective) -> TaskSettings {
    TaskSettings {
        required_issues: count(effective, "tasks.required_issues"),
        max_concurrent_fixers: count(effective, "tasks.max_concurrent_fixers"),
        max_issues_per_agent: count(effective, "tasks.max_issues_per_agent"),
        reviewer_timeout_ms: ms(effective, "tasks.reviewer_timeout"),
        party_timeout_ms: ms(effective, "tasks.party_timeout"),
        elicitation_timeout_ms: effective
            .get("tasks.elicitation_timeout")
            .map(|_| ms(effective, "tasks.elicitation_timeout")),
        fixer_timeout_ms: ms(effective, "tasks.fixer_timeout"),
        idle_timeout_ms: ms(effective, "tasks.idle_timeout"),
        retry_after_ms: ms(effective, "tasks.retry_after"),
    }
}

/// The names under `agents:`, in their order.
fn defined(effective: &Effective) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for path in effective.values.keys() {
        if let Some((name, _)) = path.strip_prefix("agents.").and_then(|rest| rest.split_once('.'))
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

fn agents(effective: &Effective, paced: bool, root: &Path) -> Result<Vec<AgentSpec>, Complaint> {
    let defined = defined(effective);
    let used = match (list(effective, "agents.use"), defined.as_slice()) {
        (used, [only]) if used.is_empty() => vec![only.to_string()],
        (used, _) => used,
    };
    if used.is_empty() {
        return Err(no_agent(root, &defined));
    }
    used.iter().map(|name| agent(name, effective, paced, root)).collect()
}

fn no_agent(root: &Path, defined: &[&str]) -> Complaint {
    let file = root.join(FILE);
    if !defined.is_empty() {
        return Complaint::usage(format!(
            "it is not said which of the agents take part: {}",
            defined.join(", ")
        ))
        .why("Nothing was started.")
        .todo(format!(
            "add under `agents:` in {} a line `use: [NAME]`, or say --agent NAME",
            file.display()
        ));
    }
    Complaint::usage("no agent is set")
        .why("Nothing was started. A review needs an agent: a command that reads a prompt and prints an answer.")
        .todo(format!("write into {}: agents: {{use: [mine], mine: {{driver: command, argv: [my-agent]}}}}", file.display()))
        .todo("or see it work without one: tribunal demo")
}

fn agent(name: &str, effective: &Effective, paced: bool, root: &Path) -> Result<AgentSpec, Complaint> {
    let defined = defined(effective);
    if !defined.contains(&name) {
        return Err(unknown_agent(name, effective, &defined, root));
    }
    let driver = driver(name, effective, paced)?;
    if let DriverSpec::Replay { script, .. } = &driver
        && !root.join(script).is_file()
    {
        let place = place(effective, &format!("agents.{name}.script"));
        return Err(Complaint::usage(format!("agent `{name}`: its script {script} does not exist"))
            .why("Nothing was started.")
            .todo(format!("correct `script:` ({place})")));
    }
    Ok(AgentSpec { name: AgentName::new(name), driver })
}

fn unknown_agent(name: &str, effective: &Effective, defined: &[&str], root: &Path) -> Complaint {
    let asked = place(effective, "agents.use");
    let complaint = Complaint::usage(format!("there is no agent `{name}`"))
        .why(format!("It is asked for by {asked}. Nothing was started."));
    match nearest(name, defined) {
        Some(near) => complaint.todo(format!("did you mean `{near}`?")),
        None if defined.is_empty() => {
            let file = root.join(FILE);
            complaint.todo(format!(
                "define it in {}: agents: {{{name}: {{driver: command, argv: […]}}}}",
                file.display()
            ))
        }
        None => complaint.todo(format!("define it under `agents:`; defined are: {}", defined.join(", "))),
    }
}

fn place(effective: &Effective, path: &str) -> String {
    effective.origin(path).map_or_else(|| "the settings".to_string(), ToString::to_string)
}

fn driver(name: &str, effective: &Effective, paced: bool) -> Result<DriverSpec, Complaint> {
    let at = |key: &str| format!("agents.{name}.{key}");
    let script = text(effective, &at("script"));
    let argv = list(effective, &at("argv"));
    let wrong = |what: &str, key: &str| {
        Complaint::usage(format!("agent `{name}`: {what}"))
            .why(format!("It stands in {}. Nothing was started.", place(effective, &at(key))))
            .todo("see what is allowed: tribunal inspect settings, or tribunal schema settings")
    };
    match (text(effective, &at("driver")), script) {
        (None, _) => {
            let key = if script.is_some() { "script" } else { "argv" };
            Err(wrong("it has no `driver`; write driver: command, or driver: replay", key))
        }
        (Some("command"), Some(_)) => Err(wrong("a `command` agent has `argv`, not `script`", "script")),
        (Some("command"), None) if argv.is_empty() => Err(wrong("a `command` agent needs `argv`", "driver")),
        (Some("command"), None) => Ok(DriverSpec::Command { argv }),
        (Some(_), None) => Err(wrong("a `replay` agent needs `script`", "driver")),
        (Some(_), Some(_)) if !argv.is_empty() => {
            Err(wrong("a `replay` agent has `script`, not `argv`", "argv"))
        }
        (Some(_), Some(script)) => Ok(DriverSpec::Replay { script: script.to_string(), paced }),
    }
}

/// What of a run's settings would run a command and came with the project.
fn items(effective: &Effective, settings: &Settings) -> Vec<Item> {
    let from_project =
        |path: &str| effective.origin(path).is_some_and(|origin| origin.layer.is_the_project_s());
    let mut items = Item::of(settings);
    items.retain(|item| match item {
        Item::Agent { name, .. } => from_project(&format!("agents.{name}.argv")),
        Item::Verify { .. } => from_project("verify"),
    });
    items
}

/// Everything the project's files define that could run a command, whether a run would use it or not.
pub(crate) fn all_items(effective: &Effective) -> Vec<Item> {
    items_where(effective, Layer::is_the_project_s)
}

/// The same of what the person set outside any project.
pub(crate) fn person_s_items(effective: &Effective) -> Vec<Hash> {
    items_where(effective, |layer| !layer.is_the_project_s()).iter().map(Item::hash).collect()
}

fn items_where(effective: &Effective, wanted: impl Fn(Layer) -> bool) -> Vec<Item> {
    let mut items = Vec::new();
    for (path, setting) in &effective.values {
        let (Value::List(list), true) = (&setting.value, wanted(setting.origin.layer)) else { continue };
        if let Some(name) = path.strip_prefix("agents.").and_then(|rest| rest.strip_suffix(".argv")) {
            items.push(Item::Agent { name: name.to_string(), argv: list.clone() });
        } else if path == "verify" {
            items.extend(list.iter().map(|command| Item::Verify { command: command.clone() }));
        }
    }
    items
}

/// The same for a text that is no file of this project.
pub(crate) fn items_of_text(name: &str, text: &str) -> Vec<Item> {
    all_items(&layers::of_text(name, text))
}

/// `reviews_folder`, else `{output_folder}/reviews`; the output folder is BMAD's, or `.tribunal` where there is no BMAD.
fn reviews(effective: &Effective) -> Result<String, Complaint> {
    let output = match text(effective, "output_folder") {
        Some(said) => inside(effective, "output_folder", said)?,
        None if effective.bmad => "_bmad-output".to_string(),
        None => ".tribunal".to_string(),
    };
    match text(effective, "reviews_folder") {
        Some(said) => inside(effective, "reviews_folder", &said.replace("{output_folder}", &output)),
        None => Ok(format!("{output}/reviews")),
    }
}

/// BMAD writes `{project-root}/_bmad-output`, or `_bmad-output`, or `./_bmad-output/`.
fn inside(effective: &Effective, path: &str, said: &str) -> Result<String, Complaint> {
    let folder = said.trim();
    let folder = folder.strip_prefix("{project-root}").map_or(folder, |rest| rest.trim_start_matches('/'));
    let folder = folder.trim_start_matches("./").trim_end_matches('/');
    let inside = Path::new(folder).components().all(|part| matches!(part, Component::Normal(_)));
    if inside && !folder.is_empty() && !folder.contains('{') {
        return Ok(folder.to_string());
    }
    let what = if folder.is_empty() {
        "is the project itself".to_string()
    } else if folder.contains('{') {
        "has a part in braces that is not known; known are {project-root} and {output_folder}".to_string()
    } else {
        "is outside the project".to_string()
    };
    Err(Complaint::usage(format!("{}: `{path}` is `{said}`, which {what}", place(effective, path)))
        .why("Nothing was started.")
        .todo(format!("name a folder below the project's root, here or as `{path}` in {FILE}")))
}
