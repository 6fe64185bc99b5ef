//! Who sits where: agents for the seats of a panel, for fixers and for challengers.
//!
//! Seats go to agents of different providers as far as the person listed them, always in the same way; text goes to no
//! agent that was not named. Who has failed twice makes room for a stronger agent, or for the next.

use alloc::vec::Vec;

use crate::{
    finding::Finding,
    ids::AgentName,
    settings::{AgentSpec, Settings},
};

/// So many failures in a row call for somebody else.
const PATIENCE: u32 = 2;

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
    agents
        .get((seat + turn) % agents.len().max(1))
        .map_or_else(|| AgentName::new(""), |agent| agent.name.clone())
}

/// The agent for a seat after failures in a row: one model up where the person named one, else the next.
pub fn seat_after(settings: &Settings, at: usize, turn: usize, failures: u32) -> AgentName {
    let agent = seat(settings, at, turn);
    match climbed(settings, agent.clone(), failures) {
        stronger if stronger != agent => stronger,
        _ => seat(settings, at, turn + (failures / PATIENCE) as usize),
    }
}

/// Whether somebody else could be asked.
pub fn has_others(settings: &Settings) -> bool {
    settings.agents.len() > 1 || settings.agents.iter().any(|agent| agent.stronger.is_some())
}

/// One model up after failures in a row, where the person named one.
pub fn climbed(settings: &Settings, agent: AgentName, failures: u32) -> AgentName {
    let mut agent = agent;
    for _ in 0..failures / PATIENCE {
        match settings.agent(&agent).and_then(|spec| spec.stronger.clone()) {
            Some(stronger) => agent = stronger,
            None => break,
        }
    }
    agent
}

/// Who challenges a finding as its voice number `voice` (from 0): of other providers than its raisers, else other agents,
/// else whoever there is.
pub fn challenger(settings: &Settings, finding: &Finding, voice: u32) -> AgentName {
    let agents = mixed(&settings.agents);
    let raised_by = |agent: &AgentSpec| finding.raisers.iter().any(|raiser| raiser.agent == agent.name);
    let raised_from =
        |agent: &AgentSpec| finding.raisers.iter().any(|r| settings.provider(&r.agent) == agent.provider());
    let of = |wanted: &dyn Fn(&AgentSpec) -> bool| -> Vec<&AgentSpec> {
        agents.iter().copied().filter(|agent| wanted(agent)).collect()
    };
    let mut able = of(&|agent| !raised_from(agent));
    if able.is_empty() {
        able = of(&|agent| !raised_by(agent));
    }
    if able.is_empty() {
        able = agents;
    }
    able.get(voice as usize % able.len().max(1))
        .map_or_else(|| AgentName::new(""), |agent| agent.name.clone())
}
