//! Chooses agents for the seats of a panel, for fixers and for challengers.
//!
//! Seats go to agents of different providers in the order of the settings, always in the same way; no agent gets text that
//! it was not configured for. An agent that has failed twice in a row is replaced by a stronger one, if one is configured,
//! else by the next that works: first those that take such work anyway, then those that stand by.

use alloc::{vec, vec::Vec};

use crate::{
    client::{Job, Part},
    finding::Finding,
    ids::AgentName,
    limits::Failing,
    settings::{AgentSpec, Settings},
};

/// From so many failures in a row on, another agent is asked.
pub const PATIENCE: u32 = 2;

/// Returns how an agent takes part in a job.
fn part(agent: &AgentSpec, job: Job) -> Part {
    agent.duties.get(&job).map_or(Part::Takes, |duty| duty.part)
}

/// Returns the agents with a wanted priority, ordered so that neighbours have different providers as far as possible: the
/// first of each provider in the order of the settings, then the second of each, and so on.
fn mixed(settings: &Settings, job: Job, wanted: impl Fn(Part) -> bool) -> Vec<&AgentSpec> {
    let mut left: Vec<&AgentSpec> = settings.agents.iter().filter(|agent| wanted(part(agent, job))).collect();
    let mut mixed: Vec<&AgentSpec> = Vec::new();
    while !left.is_empty() {
        let start = mixed.len();
        // Each pass takes one agent of each provider; the others stay for the next pass.
        left.retain(|agent| {
            let seated = mixed[start..].iter().any(|other| other.provider() == agent.provider());
            if !seated {
                mixed.push(agent);
            }
            seated
        });
    }
    mixed
}

/// Returns the agents that take a job, or those that would step in if none takes it.
fn takers(settings: &Settings, job: Job) -> Vec<&AgentSpec> {
    let takers = mixed(settings, job, |part| part == Part::Takes);
    if takers.is_empty() { mixed(settings, job, |part| part != Part::Never) } else { takers }
}

/// Returns the agent for a seat. `turn` is the number of places by which the panel has rotated.
pub fn seat(settings: &Settings, job: Job, seat: usize, turn: usize) -> AgentName {
    let agents = takers(settings, job);
    // With fewer agents than seats, agents get several seats.
    named(agents.get((seat + turn) % agents.len().max(1)).copied())
}

fn named(agent: Option<&AgentSpec>) -> AgentName {
    agent.map_or_else(|| AgentName::new(""), |agent| agent.name.clone())
}

fn works(agent: &AgentName, failing: &Failing) -> bool {
    // An agent without an entry has answered last time, or was never asked.
    failing.get(agent).is_none_or(|failures| *failures < PATIENCE)
}

/// Returns the agent that does the tasks of `agent`: itself as long as it works, else a stronger one, else the next; itself
/// again if no agent works.
pub fn stand_in(settings: &Settings, job: Job, agent: &AgentName, failing: &Failing) -> AgentName {
    if works(agent, failing) {
        return agent.clone();
    }
    after(settings, job, agent)
        .into_iter()
        .find(|other| works(other, failing))
        .unwrap_or_else(|| agent.clone())
}

/// Returns another agent than this one, if there is one. One that works is preferred.
pub fn another(settings: &Settings, job: Job, agent: &AgentName, failing: &Failing) -> AgentName {
    let others = after(settings, job, agent);
    let working = others.iter().find(|other| works(other, failing));
    working.or(others.first()).unwrap_or(agent).clone()
}

/// Returns all other agents in the order in which they would step in: the chain of stronger ones first, then those listed
/// after it that take such work, then those that stand by.
fn after(settings: &Settings, job: Job, agent: &AgentName) -> Vec<AgentName> {
    let never = |name: &AgentName| settings.agent(name).is_some_and(|spec| part(spec, job) == Part::Never);
    let mut others: Vec<AgentName> = vec![];
    let mut rung = settings.agent(agent).and_then(|spec| spec.stronger.clone());
    // The settings may name agents in a circle.
    while let Some(stronger) = rung.filter(|name| name != agent && !others.contains(name)) {
        rung = settings.agent(&stronger).and_then(|spec| spec.stronger.clone());
        others.push(stronger);
    }
    others.retain(|name| !never(name));
    let listed = mixed(settings, job, |part| part != Part::Never);
    let at = listed.iter().position(|other| other.name == *agent).unwrap_or(0);
    // Within one priority the search starts behind the agent itself, so that the work is spread.
    for wanted in [Part::Takes, Part::StandsBy, Part::StandsBehind] {
        for step in 1..=listed.len() {
            let other = listed[(at + step) % listed.len()];
            if part(other, job) == wanted && other.name != *agent && !others.contains(&other.name) {
                others.push(other.name.clone());
            }
        }
    }
    others
}

/// Returns the other agents that could do a job, in the order in which they would step in, without those that keep failing.
pub fn others(settings: &Settings, job: Job, agent: &AgentName, failing: &Failing) -> Vec<AgentName> {
    after(settings, job, agent).into_iter().filter(|other| works(other, failing)).collect()
}

/// Whether an agent that does such work is not failing.
pub fn has_working(settings: &Settings, job: Job, failing: &Failing) -> bool {
    mixed(settings, job, |part| part != Part::Never).iter().any(|agent| works(&agent.name, failing))
}

/// Whether another agent could be asked.
pub fn has_others(settings: &Settings, job: Job) -> bool {
    let able = mixed(settings, job, |part| part != Part::Never);
    // A stronger agent counts even if it is only in reserve.
    able.len() > 1 || able.iter().any(|agent| agent.stronger.is_some())
}

/// Chooses challenger number `nth` (from 0) of those asked at once, after `heard`. Agents of other providers than the
/// raisers' come first, then other agents, then any; working agents come before failing ones, and those that were heard
/// less before those that were heard more.
pub fn challenger(
    settings: &Settings,
    finding: &Finding,
    nth: u32,
    heard: &[AgentName],
    failing: &Failing,
) -> AgentName {
    let raised_by = |agent: &AgentSpec| finding.raisers.iter().any(|raiser| raiser.agent == agent.name);
    let raised_from =
        |agent: &AgentSpec| finding.raisers.iter().any(|r| settings.provider(&r.agent) == agent.provider());
    let mut able = takers(settings, Job::Review);
    if !able.iter().any(|agent| works(&agent.name, failing)) {
        // If none of the usual reviewers works, the agents that stand by are asked.
        able = mixed(settings, Job::Review, |part| part != Part::Never);
    }
    let mut heard = heard.to_vec();
    let mut next = AgentName::new("");
    // The challengers before this one count as heard, so that parallel ones differ.
    for _ in 0..=nth {
        let times = |agent: &AgentSpec| heard.iter().filter(|name| **name == agent.name).count();
        let best = able.iter().copied().min_by_key(|agent| {
            (!works(&agent.name, failing), raised_from(agent), raised_by(agent), times(agent))
        });
        next = named(best);
        heard.push(next.clone());
    }
    next
}

#[cfg(test)]
mod tests {
    use alloc::{string::String, vec};

    use super::*;
    use crate::{client::Duty, settings::DriverSpec, subject::Subject};

    /// `a b/anthropic c:review=stands_by c:fix=never d>big`, big in reserve.
    fn company(text: &str) -> Settings {
        let mut agents: Vec<AgentSpec> = vec![];
        for word in text.split(' ') {
            let (word, stronger) =
                word.split_once('>').map_or((word, None), |(word, name)| (word, Some(name)));
            let (word, duty) = word.split_once(':').map_or((word, None), |(word, duty)| (word, Some(duty)));
            let (name, provider) = word.split_once('/').unwrap_or((word, ""));
            let at = agents.iter().position(|agent| agent.name.as_str() == name).unwrap_or_else(|| {
                agents.push(AgentSpec::new(name, DriverSpec::Command { argv: vec![] }));
                agents.len() - 1
            });
            let agent = &mut agents[at];
            agent.provider = String::from(provider);
            agent.stronger = stronger.map(AgentName::new);
            if let Some((job, part)) = duty.and_then(|duty| duty.split_once('=')) {
                let job = if job == "fix" { Job::Fix } else { Job::Review };
                let part = match part {
                    "never" => Part::Never,
                    "behind" => Part::StandsBehind,
                    _ => Part::StandsBy,
                };
                agent.duties.insert(job, Duty { part, model: None });
            }
        }
        Settings {
            agents,
            reserves: vec![AgentSpec::new("big", DriverSpec::Command { argv: vec![] })],
            ..Settings::new(Subject::at("a.md", None))
        }
    }

    fn seats(settings: &Settings, job: Job) -> String {
        let names: Vec<String> = (0..4).map(|at| String::from(seat(settings, job, at, 0).as_str())).collect();
        names.join(" ")
    }

    fn steps_in(settings: &Settings, job: Job, agent: &str) -> String {
        let names = after(settings, job, &AgentName::new(agent));
        names.iter().map(AgentName::as_str).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn seats_go_to_those_who_take_the_job_and_others_step_in_by_their_part() {
        for (text, job, sitting, after_a) in [
            ("a b c", Job::Review, "a b c a", "b c"),
            ("a/x b/x c/y", Job::Review, "a c b a", "c b"),
            ("a b:review=stands_by c", Job::Review, "a c a c", "c b"),
            ("a b:review=stands_by c", Job::Fix, "a b c a", "b c"),
            ("a b:review=never c", Job::Review, "a c a c", "c"),
            ("a b:review=never c:review=never", Job::Review, "a a a a", ""),
            ("a b:review=behind c:review=stands_by d", Job::Review, "a d a d", "d c b"),
            ("a>big b", Job::Review, "a b a b", "big b"),
            ("a>b b:review=never", Job::Review, "a a a a", ""),
            ("a>b b:review=never", Job::Fix, "a b a b", "b"),
            ("a:fix=stands_by b:fix=never", Job::Fix, "a a a a", ""),
        ] {
            let settings = company(text);
            assert_eq!(seats(&settings, job), sitting, "{text} {job}");
            assert_eq!(steps_in(&settings, job, "a"), after_a, "{text} {job}");
        }
    }

    #[test]
    fn who_never_does_a_job_is_nobody_who_could_be_asked() {
        let failing: Failing = [(AgentName::new("a"), PATIENCE)].into_iter().collect();
        let working = |text: &str| has_working(&company(text), Job::Review, &failing);
        assert!(working("a b") && working("a b:review=stands_by"));
        assert!(!working("a b:review=never"));
        let others = |text: &str| has_others(&company(text), Job::Review);
        assert!(others("a b:review=stands_by") && others("a>big"));
        assert!(!others("a b:review=never"));
    }
}
