//! Chooses agents for the seats of a panel, for fixers and for challengers.
//!
//! Seats go to agents of different providers in the order of the settings, always in the same way; no agent gets text that
//! it was not configured for. An agent that has failed twice in a row is replaced by a stronger one, if one is configured,
//! else by the next that works: first those that take such work anyway, then those that stand by.

use alloc::{vec, vec::Vec};

use crate::{
    findings::finding::Finding,
    runs::settings::{AgentSpec, Settings},
    tasks::client::{JobKind, JobPriority},
};
use tribunal_engine::{ids::AgentName, limits::FailureCounts};

/// From so many failures in a row on, another agent is asked.
pub const MAX_FAILURES_IN_A_ROW: u32 = 2;

/// Returns how an agent takes part in a job.
fn job_priority(agent_spec: &AgentSpec, job_kind: JobKind) -> JobPriority {
    agent_spec.find_duty(job_kind).map_or(JobPriority::Takes, |duty| duty.part)
}

/// Returns the agents with a wanted priority, ordered so that neighbours have different providers as far as possible: the
/// first of each provider in the order of the settings, then the second of each, and so on.
fn mix_providers(settings: &Settings, job_kind: JobKind, is_wanted: impl Fn(JobPriority) -> bool) -> Vec<&AgentSpec> {
    let mut unseated: Vec<&AgentSpec> =
        settings.agents.iter().filter(|agent| is_wanted(job_priority(agent, job_kind))).collect();
    let mut ordered: Vec<&AgentSpec> = Vec::new();
    while !unseated.is_empty() {
        let turn_start = ordered.len();
        // Each pass takes one agent of each provider; the others stay for the next pass.
        unseated.retain(|agent| {
            let has_provider =
                ordered[turn_start..].iter().any(|seated_agent| seated_agent.provider_name() == agent.provider_name());
            if !has_provider {
                ordered.push(agent);
            }
            has_provider
        });
    }
    ordered
}

/// Returns the agents that take a job, or those that would step in if none takes it.
fn agents_taking(settings: &Settings, job_kind: JobKind) -> Vec<&AgentSpec> {
    let taking = mix_providers(settings, job_kind, |part| part == JobPriority::Takes);
    if taking.is_empty() { mix_providers(settings, job_kind, |part| part != JobPriority::Never) } else { taking }
}

/// Returns the agent for a seat. `rotation` is the number of places by which the panel has rotated.
pub fn agent_for_seat(settings: &Settings, job_kind: JobKind, seat_index: usize, rotation: usize) -> AgentName {
    let candidates = agents_taking(settings, job_kind);
    // With fewer agents than seats, agents get several seats.
    agent_name(candidates.get((seat_index + rotation) % candidates.len().max(1)).copied())
}

fn agent_name(agent_spec: Option<&AgentSpec>) -> AgentName {
    agent_spec.map_or_else(|| AgentName::new(""), |agent_spec| agent_spec.name.clone())
}

fn is_working(name: &AgentName, failure_counts: &FailureCounts) -> bool {
    // An agent without an entry has answered last time, was never asked, or got another chance from the user.
    failure_counts.get(name).is_none_or(|failures| *failures < MAX_FAILURES_IN_A_ROW)
}

/// Returns the agent that does the tasks of `agent`: itself as long as it works, else a stronger one, else the next; itself
/// again if no agent works.
pub fn stand_in(
    settings: &Settings,
    job_kind: JobKind,
    agent_name: &AgentName,
    failure_counts: &FailureCounts,
) -> AgentName {
    if is_working(agent_name, failure_counts) {
        return agent_name.clone();
    }
    agents_after(settings, job_kind, agent_name)
        .into_iter()
        .find(|candidate| is_working(candidate, failure_counts))
        .unwrap_or_else(|| agent_name.clone())
}

/// Returns another agent than this one, if there is one. One that works is preferred.
pub fn other_agent(
    settings: &Settings,
    job_kind: JobKind,
    agent: &AgentName,
    failure_counts: &FailureCounts,
) -> AgentName {
    let candidates = agents_after(settings, job_kind, agent);
    let first_working = candidates.iter().find(|candidate| is_working(candidate, failure_counts));
    first_working.or(candidates.first()).unwrap_or(agent).clone()
}

/// Returns all other agents in the order in which they would step in: the chain of stronger ones first, then those listed
/// after it that take such work, then those that stand by.
fn agents_after(settings: &Settings, job_kind: JobKind, agent: &AgentName) -> Vec<AgentName> {
    let is_never_asked = |name: &AgentName| {
        settings.find_agent(name).is_some_and(|agent_spec| job_priority(agent_spec, job_kind) == JobPriority::Never)
    };
    let mut ordered: Vec<AgentName> = vec![];
    let mut next_stronger = settings.find_agent(agent).and_then(|agent_spec| agent_spec.stronger.clone());
    // The settings may name agents in a circle.
    while let Some(stronger) = next_stronger.filter(|name| name != agent && !ordered.contains(name)) {
        next_stronger = settings.find_agent(&stronger).and_then(|agent_spec| agent_spec.stronger.clone());
        ordered.push(stronger);
    }
    ordered.retain(|name| !is_never_asked(name));
    let able = mix_providers(settings, job_kind, |part| part != JobPriority::Never);
    let own_index = able.iter().position(|candidate| candidate.name == *agent).unwrap_or(0);
    // Within one priority the search starts behind the agent itself, so that the work is spread.
    for wanted_priority in [JobPriority::Takes, JobPriority::StandsBy, JobPriority::LastResort] {
        for step in 1..=able.len() {
            let candidate = able[(own_index + step) % able.len()];
            if job_priority(candidate, job_kind) == wanted_priority
                && candidate.name != *agent
                && !ordered.contains(&candidate.name)
            {
                ordered.push(candidate.name.clone());
            }
        }
    }
    ordered
}

/// Returns the other agents that could do a job, in the order in which they would step in, without those that keep failing.
pub fn working_others(
    settings: &Settings,
    job_kind: JobKind,
    agent: &AgentName,
    failure_counts: &FailureCounts,
) -> Vec<AgentName> {
    agents_after(settings, job_kind, agent)
        .into_iter()
        .filter(|candidate| is_working(candidate, failure_counts))
        .collect()
}

/// Whether an agent that does such work is not failing.
pub fn has_working_agent(settings: &Settings, job_kind: JobKind, failure_counts: &FailureCounts) -> bool {
    mix_providers(settings, job_kind, |part| part != JobPriority::Never)
        .iter()
        .any(|agent| is_working(&agent.name, failure_counts))
}

/// Whether another agent could be asked.
pub fn has_other_agents(settings: &Settings, job_kind: JobKind) -> bool {
    let able = mix_providers(settings, job_kind, |part| part != JobPriority::Never);
    // A stronger agent counts even if it is only in reserve.
    able.len() > 1 || able.iter().any(|agent| agent.stronger.is_some())
}

/// Chooses who judges a change: an agent of another provider than the one that made it, if there is one, else another agent.
pub fn choose_judge(settings: &Settings, made_by: Option<&AgentName>, failure_counts: &FailureCounts) -> AgentName {
    let maker_provider = made_by.map(|maker| settings.agent_provider(maker));
    let best_agent = able_challengers(settings, failure_counts).into_iter().min_by_key(|agent| {
        let shares_provider = maker_provider == Some(agent.provider_name());
        (!is_working(&agent.name, failure_counts), shares_provider, made_by == Some(&agent.name))
    });
    agent_name(best_agent)
}

/// A challenger that was heard about a finding.
#[derive(Clone, Debug)]
pub struct HeardAgent {
    pub name: AgentName,
    pub has_refuted: bool,
}

/// Returns the agents that can be asked to challenge a finding and are not failing.
pub fn working_challengers<'s>(
    settings: &'s Settings,
    failure_counts: &FailureCounts,
) -> impl Iterator<Item = &'s AgentSpec> {
    able_challengers(settings, failure_counts)
        .into_iter()
        .filter(|agent_spec| is_working(&agent_spec.name, failure_counts))
}

fn able_challengers<'s>(settings: &'s Settings, failure_counts: &FailureCounts) -> Vec<&'s AgentSpec> {
    let able = agents_taking(settings, JobKind::Review);
    if able.iter().any(|agent| is_working(&agent.name, failure_counts)) {
        return able;
    }
    // If none of the usual reviewers works, the agents that stand by are asked.
    mix_providers(settings, JobKind::Review, |part| part != JobPriority::Never)
}

/// Chooses challenger number `challenger_index` (from 0) of those asked at once, after `heard_agents`. Working agents come
/// before failing ones, then providers that were heard least, because the answers of one provider are one voice, then those
/// that have not refuted the finding yet. Of equals, agents of other providers than the raisers' come first, then other
/// agents, then the raisers themselves; then the one that was heard least.
pub fn choose_challenger(
    settings: &Settings,
    finding: &Finding,
    challenger_index: u32,
    heard_agents: &[HeardAgent],
    failure_counts: &FailureCounts,
) -> AgentName {
    let has_raised = |agent: &AgentSpec| finding.raisers.iter().any(|raiser| raiser.agent == agent.name);
    let shares_provider = |agent: &AgentSpec| {
        finding.raisers.iter().any(|known_raiser| settings.agent_provider(&known_raiser.agent) == agent.provider_name())
    };
    let able = able_challengers(settings, failure_counts);
    let mut heard_agents = heard_agents.to_vec();
    let mut chosen = AgentName::new("");
    // The challengers before this one count as heard, so that parallel ones differ.
    for _ in 0..=challenger_index {
        let best_agent = able.iter().copied().min_by_key(|agent| {
            let is_same_provider = |heard: &&HeardAgent| settings.agent_provider(&heard.name) == agent.provider_name();
            let same_provider = || heard_agents.iter().filter(is_same_provider);
            (
                !is_working(&agent.name, failure_counts),
                same_provider().count(),
                same_provider().any(|heard| heard.has_refuted),
                shares_provider(agent),
                has_raised(agent),
                heard_agents.iter().filter(|heard| heard.name == agent.name).count(),
            )
        });
        chosen = agent_name(best_agent);
        heard_agents.push(HeardAgent { name: chosen.clone(), has_refuted: false });
    }
    chosen
}

#[cfg(test)]
mod tests {
    use alloc::{string::String, vec};

    use super::*;
    use crate::{runs::settings::DriverSpec, tasks::client::JobDuty};

    /// Makes settings from a text such as `a b/anthropic c:review=stands_by c:fix=never d>big`; `big` is in reserve.
    fn settings_with_agents(agent_text: &str) -> Settings {
        let mut agents: Vec<AgentSpec> = vec![];
        for word in agent_text.split(' ') {
            let (word, stronger) = word.split_once('>').map_or((word, None), |(word, name)| (word, Some(name)));
            let (word, duty) = word.split_once(':').map_or((word, None), |(word, duty)| (word, Some(duty)));
            let (name, provider) = word.split_once('/').unwrap_or((word, ""));
            let agent_index = agents.iter().position(|agent| agent.name.as_str() == name).unwrap_or_else(|| {
                agents.push(AgentSpec::new(name, DriverSpec::Command { argv: vec![] }));
                agents.len() - 1
            });
            let agent = &mut agents[agent_index];
            agent.provider = String::from(provider);
            agent.stronger = stronger.map(AgentName::new);
            if let Some((job, part)) = duty.and_then(|duty| duty.split_once('=')) {
                let job = if job == "fix" { JobKind::Fix } else { JobKind::Review };
                let part = match part {
                    "never" => JobPriority::Never,
                    "last" => JobPriority::LastResort,
                    _ => JobPriority::StandsBy,
                };
                agent.duties.insert(job, JobDuty { part, ..JobDuty::default() });
            }
        }
        Settings {
            agents,
            reserves: vec![AgentSpec::new("big", DriverSpec::Command { argv: vec![] })],
            ..Settings::default()
        }
    }

    fn seat_names(settings: &Settings, job: JobKind) -> String {
        let agent_names: Vec<String> =
            (0..4).map(|seat_index| String::from(agent_for_seat(settings, job, seat_index, 0).as_str())).collect();
        agent_names.join(" ")
    }

    fn successor_names(settings: &Settings, job: JobKind, agent: &str) -> String {
        let names = agents_after(settings, job, &AgentName::new(agent));
        names.iter().map(AgentName::as_str).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn seats_go_to_agents_that_take_the_job_and_others_step_in_by_priority() {
        for (text, job, expected_seats, expected_successors) in [
            ("a b c", JobKind::Review, "a b c a", "b c"),
            ("a/x b/x c/y", JobKind::Review, "a c b a", "c b"),
            ("a b:review=stands_by c", JobKind::Review, "a c a c", "c b"),
            ("a b:review=stands_by c", JobKind::Fix, "a b c a", "b c"),
            ("a b:review=never c", JobKind::Review, "a c a c", "c"),
            ("a b:review=never c:review=never", JobKind::Review, "a a a a", ""),
            ("a b:review=last c:review=stands_by d", JobKind::Review, "a d a d", "d c b"),
            ("a>big b", JobKind::Review, "a b a b", "big b"),
            ("a>b b:review=never", JobKind::Review, "a a a a", ""),
            ("a>b b:review=never", JobKind::Fix, "a b a b", "b"),
            ("a:fix=stands_by b:fix=never", JobKind::Fix, "a a a a", ""),
        ] {
            let settings = settings_with_agents(text);
            assert_eq!(seat_names(&settings, job), expected_seats, "{text} {job}");
            assert_eq!(successor_names(&settings, job, "a"), expected_successors, "{text} {job}");
        }
    }

    #[test]
    fn an_agent_that_never_does_a_job_is_not_asked_for_it() {
        let failing: FailureCounts = [(AgentName::new("a"), MAX_FAILURES_IN_A_ROW)].into_iter().collect();
        let has_working_with = |text: &str| has_working_agent(&settings_with_agents(text), JobKind::Review, &failing);
        assert!(has_working_with("a b") && has_working_with("a b:review=stands_by"));
        assert!(!has_working_with("a b:review=never"));
        let has_others_with = |text: &str| has_other_agents(&settings_with_agents(text), JobKind::Review);
        assert!(has_others_with("a b:review=stands_by") && has_others_with("a>big"));
        assert!(!has_others_with("a b:review=never"));
    }
}
