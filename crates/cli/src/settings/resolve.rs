//! What all layers and the project come to for one run.

use std::{
    num::NonZeroUsize,
    path::{Component, Path},
};

use tribunal_bmad::{OUTPUT_FOLDER, folder};
use tribunal_core::{
    level::{Goal, Level, Tier},
    limits::{Cost, Limits, Waits},
    settings::{PlanSettings, Settings, TaskSettings, WritingSettings},
    subject::Subject,
};
use tribunal_report::Mode;

use super::{
    agents::{Company, company, problems},
    kind::Value,
    layers::{self, Effective, FILE, Flag, Given},
    read::Problem,
    roster::{self, Roster},
    running::items,
};
use crate::{clients::Present, complaint::Complaint, trust::Item};

/// What a person asked for on the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    pub given: Given,
    /// Scripts take their time: somebody is watching.
    pub paced: bool,
    /// Clients as they are on this machine, in the order in which they are taken where nobody is named.
    pub clients: Vec<Present>,
    /// Asks them who is signed in, where nothing shows it.
    pub ask: Option<fn(&mut [Present])>,
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
    pub progress: Option<Mode>,
    /// Of the command, not of the run: not pinned either.
    pub share: Share,
    /// What would run, and came with the project.
    pub items: Vec<Item>,
    /// What a person should know before it starts.
    pub warnings: Vec<String>,
    /// The same, where nothing is amiss.
    pub notes: Vec<String>,
}

/// How the runs of one command share what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Runs at the same time.
    pub jobs: NonZeroUsize,
    /// Agents at the same time, of all runs together.
    pub agents: NonZeroUsize,
    /// Calls of clients in an hour, of all runs of the machine.
    pub calls: NonZeroUsize,
}

impl Share {
    /// Where projects differ, the one that allows less.
    pub fn least(self, other: Share) -> Share {
        Share {
            jobs: self.jobs.min(other.jobs),
            agents: self.agents.min(other.agents),
            calls: self.calls.min(other.calls),
        }
    }

    /// No more runs at once than there are.
    pub fn among(self, runs: usize) -> Share {
        Share { jobs: NonZeroUsize::new(runs).map_or(self.jobs, |runs| self.jobs.min(runs)), ..self }
    }
}

/// What the settings come to beside their values.
#[derive(Debug)]
pub(crate) struct Survey {
    /// Why no review would start with them.
    pub problems: Vec<Problem>,
    pub roster: Roster,
}

/// For those who only want to see.
pub(crate) fn survey(root: &Path, effective: &Effective) -> Survey {
    Survey { problems: problems(effective), roster: roster(root, effective) }
}

fn roster(root: &Path, effective: &Effective) -> Roster {
    roster::of_project(root, count(effective, "tasks.party_min_agents"))
}

pub(crate) fn resolve(root: &Path, subject: Subject, wishes: &Wishes) -> Result<Resolved, Complaint> {
    let effective = layers::gather(root, &wishes.given)?;
    let tier = u8::try_from(whole(&effective, "tier")).ok().and_then(Tier::new).unwrap_or_default();
    let Company { agents, reserves, mut warnings, chosen } = company(&effective, tier, wishes, root)?;
    let Roster { personas, warning } = roster(root, &effective);
    let mut tasks = tasks(&effective);
    tasks.plans.roster = personas;
    tasks.writing = WritingSettings {
        approve_each: is_word(&effective, "approve", "each"),
        seeds: seeds(&effective)?,
        in_session: false,
    };
    let settings = Settings {
        subject,
        tier,
        level: level(&effective),
        goal: if is_word(&effective, "goal", "critical-only") { Goal::CriticalOnly } else { Goal::ZeroOpen },
        fix: !matches!(effective.get("fix"), Some(Value::Flag(false))),
        limits: limits(&effective),
        tasks,
        agents,
        verify: list(&effective, "verify"),
        reviews: reviews(&effective)?,
        reserves,
        target_confidence: effective.get("target_confidence").map(|_| count(&effective, "target_confidence")),
    };
    let items = items(&effective, &settings);
    warnings.extend(warning);
    Ok(Resolved {
        settings,
        progress: mode(&effective),
        share: share(&effective),
        items,
        warnings,
        notes: chosen.into_iter().collect(),
    })
}

pub(crate) fn share(effective: &Effective) -> Share {
    let number = |path: &str| {
        let number = usize::try_from(whole(effective, path)).unwrap_or(usize::MAX);
        NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN)
    };
    Share { jobs: number("jobs"), agents: number("agents.at_once"), calls: number("limits.calls_per_hour") }
}

/// How much is shown, for commands that start nothing anew.
pub(crate) fn mode(effective: &Effective) -> Option<Mode> {
    text(effective, "progress.mode").and_then(Mode::parse)
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

pub(super) fn text<'a>(effective: &'a Effective, path: &str) -> Option<&'a str> {
    match effective.get(path) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

fn is_word(effective: &Effective, path: &str, word: &str) -> bool {
    text(effective, path) == Some(word)
}

pub(super) fn list(effective: &Effective, path: &str) -> Vec<String> {
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
        waits: Waits {
            at_most_ms: ms(effective, "limits.max_wait"),
            first: is_word(effective, "agents.on_limit", "wait"),
        },
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
        check_timeout_ms: ms(effective, "tasks.check_timeout"),
        writing: WritingSettings::default(),
        idle_timeout_ms: ms(effective, "tasks.idle_timeout"),
        retry_after_ms: ms(effective, "tasks.retry_after"),
        plans: PlanSettings {
            min_agents: count(effective, "tasks.party_min_agents"),
            max_rounds: count(effective, "tasks.party_max_rounds"),
            min_methods: count(effective, "tasks.elicitation_min_methods"),
            roster: Vec::new(),
        },
    }
}

/// Where a setting was set, for people.
pub(super) fn place(effective: &Effective, path: &str) -> String {
    effective.origin(path).map_or_else(|| "the settings".to_string(), ToString::to_string)
}

/// `reviews_folder`, else `{output_folder}/reviews`; the output folder is BMAD's, or `.tribunal` where there is no BMAD.
fn reviews(effective: &Effective) -> Result<String, Complaint> {
    let output = match text(effective, "output_folder") {
        Some(said) => inside(effective, "output_folder", said)?,
        None if effective.bmad => OUTPUT_FOLDER.to_string(),
        None => ".tribunal".to_string(),
    };
    match text(effective, "reviews_folder") {
        Some(said) => inside(effective, "reviews_folder", &said.replace("{output_folder}", &output)),
        None => Ok(format!("{output}/reviews")),
    }
}

/// What copies get beside what git would track. It need not be there yet: a copy takes what there is.
fn seeds(effective: &Effective) -> Result<Vec<String>, Complaint> {
    const SEED: &str = "copies.seed";
    let mut seeds: Vec<String> = Vec::new();
    for said in list(effective, SEED) {
        let seed = inside(effective, SEED, &said)?;
        let own = seed.split('/').next().is_some_and(|first| first == ".git" || first == ".tribunal");
        if own {
            return Err(Complaint::usage(format!(
                "{}: `{SEED}` has `{said}`, which no copy ever has",
                place(effective, SEED)
            ))
            .why("It holds what keeps the project's history. Nothing was started.")
            .todo("take it out of the list"));
        }
        if !seeds.contains(&seed) {
            seeds.push(seed);
        }
    }
    Ok(seeds)
}

/// A path below the project's root, or why not.
fn inside(effective: &Effective, path: &str, said: &str) -> Result<String, Complaint> {
    let folder = folder(said);
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
        .todo(format!(
            "name {} below the project's root, here or as `{path}` in {FILE}",
            if path == "copies.seed" { "something" } else { "a folder" }
        )))
}
