//! What the file, the flags and the project come to for one run.

use std::{fs, path::Path};

use tribunal_bmad::{CONFIG_PATH, Config};
use tribunal_core::{
    ids::AgentName,
    level::{Goal, Level, Tier},
    limits::Limits,
    settings::{AgentSpec, DriverSpec, Settings, TaskSettings},
    subject::Subject,
};

use super::{
    nearest,
    raw::{self, FILE, RawAgent, RawAgents, RawDriver, RawLimits, RawTasks},
};
use crate::complaint::Complaint;

/// What a person asked for on the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    pub tier: Option<Tier>,
    pub level: Option<Level>,
    pub goal: Option<Goal>,
    pub agent: Option<String>,
    pub no_fix: bool,
    /// Scripts take their time: somebody is watching.
    pub paced: bool,
}

/// Flags win over the file, the file over BMAD's settings, those over the defaults.
pub(crate) fn resolve(root: &Path, subject: Subject, wishes: &Wishes) -> Result<Settings, Complaint> {
    let raw = raw::read(root)?;
    Ok(Settings {
        subject,
        tier: wishes.tier.or(raw.tier).unwrap_or_default(),
        level: wishes.level.or(raw.level),
        goal: wishes.goal.or(raw.goal).unwrap_or_default(),
        fix: !wishes.no_fix,
        limits: limits(&raw.limits),
        tasks: tasks(&raw.tasks),
        agents: agents(&raw.agents, wishes, root)?,
        verify: raw.verify,
        reviews: reviews(root, raw.output_folder.as_deref())?,
    })
}

fn limits(raw: &RawLimits) -> Limits {
    let default = Limits::default();
    Limits {
        rounds: raw.max_review_rounds.map_or(default.rounds, Into::into),
        fix_iterations: raw.max_fix_iterations.map_or(default.fix_iterations, Into::into),
        failures: raw.max_failures.map_or(default.failures, Into::into),
        findings: raw.max_findings.map_or(default.findings, Into::into),
        runtime_ms: raw.max_runtime_minutes.map_or(default.runtime_ms, |m| m.get().saturating_mul(60_000)),
        cost: raw.max_cost.unwrap_or(default.cost),
        tokens: raw.max_tokens.map_or(default.tokens, Into::into),
    }
}

fn tasks(raw: &RawTasks) -> TaskSettings {
    let default = TaskSettings::default();
    let ms = |seconds: Option<std::num::NonZeroU64>, default: u64| {
        seconds.map_or(default, |seconds| seconds.get().saturating_mul(1000))
    };
    TaskSettings {
        required_issues: raw.required_issues.unwrap_or(default.required_issues),
        max_concurrent_fixers: raw.max_concurrent_fixers.map_or(default.max_concurrent_fixers, Into::into),
        max_issues_per_agent: raw.max_issues_per_agent.map_or(default.max_issues_per_agent, Into::into),
        reviewer_timeout_ms: ms(raw.reviewer_timeout, default.reviewer_timeout_ms),
        party_timeout_ms: ms(raw.party_timeout, default.party_timeout_ms),
        fixer_timeout_ms: ms(raw.fixer_timeout, default.fixer_timeout_ms),
        elicitation_timeout_ms: default.elicitation_timeout_ms,
        idle_timeout_ms: default.idle_timeout_ms,
        retry_after_ms: raw.retry_after.map_or(default.retry_after_ms, |s| s.saturating_mul(1000)),
    }
}

fn agents(raw: &RawAgents, wishes: &Wishes, root: &Path) -> Result<Vec<AgentSpec>, Complaint> {
    let used: Vec<String> = match &wishes.agent {
        Some(agent) => vec![agent.clone()],
        None if raw.used.is_empty() && raw.named.len() == 1 => raw.named.keys().cloned().collect(),
        None => raw.used.clone(),
    };
    if used.is_empty() {
        return Err(no_agent(root, raw));
    }
    used.iter().map(|name| agent(name, raw, wishes, root)).collect()
}

fn no_agent(root: &Path, raw: &RawAgents) -> Complaint {
    let file = root.join(FILE);
    if !raw.named.is_empty() {
        return Complaint::usage(format!("{} names agents but does not say which take part", file.display()))
            .todo("add under `agents:` a line `use: [NAME]`, or say --agent NAME");
    }
    Complaint::usage("no agent is set")
        .why("Nothing was started. A review needs an agent: a command that reads a prompt and prints an answer.")
        .todo(format!("write into {}: agents: {{use: [mine], mine: {{driver: command, argv: [my-agent]}}}}", file.display()))
        .todo("or see it work without one: tribunal demo")
}

fn agent(name: &str, raw: &RawAgents, wishes: &Wishes, root: &Path) -> Result<AgentSpec, Complaint> {
    let file = root.join(FILE);
    let Some(spec) = raw.named.get(name) else {
        let known: Vec<&str> = raw.named.keys().map(String::as_str).collect();
        let complaint = Complaint::usage(format!("there is no agent `{name}` in {}", file.display()));
        return Err(match nearest(name, &known) {
            Some(near) => complaint.todo(format!("did you mean `{near}`?")),
            None => complaint.todo(format!("define it there; defined are: {}", known.join(", "))),
        });
    };
    let driver = driver(name, spec, wishes.paced)?;
    if let DriverSpec::Replay { script, .. } = &driver
        && !root.join(script).is_file()
    {
        return Err(Complaint::usage(format!("agent `{name}`: its script {script} does not exist"))
            .todo(format!("correct `script:` in {}", file.display())));
    }
    Ok(AgentSpec { name: AgentName::new(name), driver })
}

fn driver(name: &str, spec: &RawAgent, paced: bool) -> Result<DriverSpec, Complaint> {
    let wrong =
        |what: &str| Complaint::usage(format!("agent `{name}`: {what}")).todo("tribunal schema settings");
    match (spec.driver, &spec.script) {
        (RawDriver::Command, Some(_)) => Err(wrong("a `command` agent has `argv`, not `script`")),
        (RawDriver::Command, None) if spec.argv.is_empty() => Err(wrong("a `command` agent needs `argv`")),
        (RawDriver::Command, None) => Ok(DriverSpec::Command { argv: spec.argv.clone() }),
        (RawDriver::Replay, None) => Err(wrong("a `replay` agent needs `script`")),
        (RawDriver::Replay, Some(_)) if !spec.argv.is_empty() => {
            Err(wrong("a `replay` agent has `script`, not `argv`"))
        }
        (RawDriver::Replay, Some(script)) => Ok(DriverSpec::Replay { script: script.clone(), paced }),
    }
}

/// `{output_folder}/reviews`, or `.tribunal/reviews` where there is no BMAD.
fn reviews(root: &Path, said: Option<&str>) -> Result<String, Complaint> {
    let folder = match said {
        Some(folder) => folder.trim_end_matches('/').to_string(),
        None => match fs::read_to_string(root.join(CONFIG_PATH)) {
            Ok(text) => {
                let parsed = Config::parse(&text);
                if let Some(problem) = parsed.problem {
                    let first = problem.lines().next().unwrap_or_default().to_string();
                    return Err(Complaint::usage(format!("{CONFIG_PATH}: {first}"))
                        .why("Without it the output folder is not known. Nothing was started.")
                        .todo("correct the file, or set `output_folder` in tribunal.yaml"));
                }
                parsed.config.output_folder().to_string()
            }
            Err(_) => ".tribunal".to_string(),
        },
    };
    if folder.is_empty() {
        return Err(
            Complaint::usage("the output folder is empty").todo("name a folder below the project's root")
        );
    }
    let inside = Path::new(&folder).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !inside {
        return Err(Complaint::usage(format!("output folder `{folder}` is outside the project"))
            .todo("name a folder below the project's root"));
    }
    Ok(format!("{folder}/reviews"))
}
