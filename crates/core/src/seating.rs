//! Who sits where: agents for the seats of a panel, for fixers and for challengers.
//!
//! Seats go to agents of different providers as far as the person listed them, always in the same way; text goes to no
//! agent that was not named. Who has failed twice in a row is stood in for by a stronger agent, where one was named, else
//! by the next that works.

use alloc::{vec, vec::Vec};

use crate::{
    client::Job,
    finding::Finding,
    ids::AgentName,
    limits::Failing,
    settings::{AgentSpec, Settings},
};

/// So many failures in a row call for somebody else.
pub const PATIENCE: u32 = 2;

/// All agents, so that neighbours have different providers as long as there are some: the first of each provider, in the
/// order in which they were listed, then the second of each, and so on.
fn mixed(agents: &[AgentSpec]) -> Vec<&AgentSpec> {
    let mut left: Vec<&AgentSpec> = agents.iter().collect();
    let mut mixed: Vec<&AgentSpec> = Vec::new();
    while !left.is_empty() {
        let start = mixed.len();
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

/// The agent for a seat. `turn`: how many places the panel has moved on.
pub fn seat(settings: &Settings, seat: usize, turn: usize) -> AgentName {
    let agents = mixed(&settings.agents);
    named(agents.get((seat + turn) % agents.len().max(1)).copied())
}

fn named(agent: Option<&AgentSpec>) -> AgentName {
    agent.map_or_else(|| AgentName::new(""), |agent| agent.name.clone())
}

fn works(agent: &AgentName, failing: &Failing) -> bool {
    failing.get(agent).is_none_or(|failures| *failures < PATIENCE)
}

/// Who does the tasks of an agent: itself as long as it works, else whoever is stronger, else the next; itself again if
/// nobody works.
pub fn stand_in(settings: &Settings, agent: &AgentName, failing: &Failing) -> AgentName {
    if works(agent, failing) {
        return agent.clone();
    }
    after(settings, agent).into_iter().find(|other| works(other, failing)).unwrap_or_else(|| agent.clone())
}

/// Somebody else than this agent, if there is anybody.
pub fn another(settings: &Settings, agent: &AgentName, failing: &Failing) -> AgentName {
    let others = after(settings, agent);
    let working = others.iter().find(|other| works(other, failing));
    working.or(others.first()).unwrap_or(agent).clone()
}

/// All other agents, in the order in which they would step in: up the ladder first, then those listed after it.
fn after(settings: &Settings, agent: &AgentName) -> Vec<AgentName> {
    let mut others: Vec<AgentName> = vec![];
    let mut rung = settings.agent(agent).and_then(|spec| spec.stronger.clone());
    while let Some(stronger) = rung.filter(|name| name != agent && !others.contains(name)) {
        rung = settings.agent(&stronger).and_then(|spec| spec.stronger.clone());
        others.push(stronger);
    }
    let listed = mixed(&settings.agents);
    let at = listed.iter().position(|other| other.name == *agent).unwrap_or(0);
    for step in 1..=listed.len() {
        let other = &listed[(at + step) % listed.len()].name;
        if other != agent && !others.contains(other) {
            others.push(other.clone());
        }
    }
    others
}

/// Who else could do a job, in the order in which they would step in; nobody who keeps failing.
pub fn others(settings: &Settings, _job: Job, agent: &AgentName, failing: &Failing) -> Vec<AgentName> {
    after(settings, agent).into_iter().filter(|other| works(other, failing)).collect()
}

/// Whether anybody who takes part does not keep failing.
pub fn has_working(settings: &Settings, failing: &Failing) -> bool {
    settings.agents.iter().any(|agent| works(&agent.name, failing))
}

/// Whether somebody else could be asked.
pub fn has_others(settings: &Settings) -> bool {
    settings.agents.len() > 1 || settings.agents.iter().any(|agent| agent.stronger.is_some())
}

/// Who challenges a finding as number `nth` (from 0) of those asked at once, after `heard`: of other providers than its
/// raisers, else other agents, else whoever there is; who works before who does not, who was heard less before who was
/// heard more.
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
    let able = mixed(&settings.agents);
    let mut heard = heard.to_vec();
    let mut next = AgentName::new("");
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
