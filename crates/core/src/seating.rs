//! Who sits where: agents for the seats of a panel, for fixers and for challengers.
//!
//! Seats go to agents of different providers as far as the person listed them, always in the same way; text goes to no
//! agent that was not named for that kind of work. Who has failed twice in a row is stood in for by a stronger agent, where
//! one was named, else by the next that works: first those who take such work anyway, then those who stand by.

use alloc::{vec, vec::Vec};

use crate::{
    client::{Job, Part},
    finding::Finding,
    ids::AgentName,
    limits::Failing,
    settings::{AgentSpec, Settings},
};

/// So many failures in a row call for somebody else.
pub const PATIENCE: u32 = 2;

/// What an agent does of a job.
fn part(agent: &AgentSpec, job: Job) -> Part {
    agent.duties.get(&job).map_or(Part::Takes, |duty| duty.part)
}

/// Those who have this part in a job, so that neighbours have different providers as long as there are some: the first of
/// each provider, in the order in which they were listed, then the second of each, and so on.
fn mixed(settings: &Settings, job: Job, wanted: impl Fn(Part) -> bool) -> Vec<&AgentSpec> {
    let mut left: Vec<&AgentSpec> = settings.agents.iter().filter(|agent| wanted(part(agent, job))).collect();
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

/// Those who take a job; those who would step in, if nobody takes it.
fn takers(settings: &Settings, job: Job) -> Vec<&AgentSpec> {
    let takers = mixed(settings, job, |part| part == Part::Takes);
    if takers.is_empty() { mixed(settings, job, |part| part != Part::Never) } else { takers }
}

/// The agent for a seat. `turn`: how many places the panel has moved on.
pub fn seat(settings: &Settings, job: Job, seat: usize, turn: usize) -> AgentName {
    let agents = takers(settings, job);
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
pub fn stand_in(settings: &Settings, job: Job, agent: &AgentName, failing: &Failing) -> AgentName {
    if works(agent, failing) {
        return agent.clone();
    }
    after(settings, job, agent)
        .into_iter()
        .find(|other| works(other, failing))
        .unwrap_or_else(|| agent.clone())
}

/// Somebody else than this agent, if there is anybody.
pub fn another(settings: &Settings, job: Job, agent: &AgentName, failing: &Failing) -> AgentName {
    let others = after(settings, job, agent);
    let working = others.iter().find(|other| works(other, failing));
    working.or(others.first()).unwrap_or(agent).clone()
}

/// All other agents, in the order in which they would step in: up the ladder first, then those listed after it who take such
/// work, then those who stand by for it.
fn after(settings: &Settings, job: Job, agent: &AgentName) -> Vec<AgentName> {
    let never = |name: &AgentName| settings.agent(name).is_some_and(|spec| part(spec, job) == Part::Never);
    let mut others: Vec<AgentName> = vec![];
    let mut rung = settings.agent(agent).and_then(|spec| spec.stronger.clone());
    while let Some(stronger) = rung.filter(|name| name != agent && !others.contains(name)) {
        rung = settings.agent(&stronger).and_then(|spec| spec.stronger.clone());
        others.push(stronger);
    }
    others.retain(|name| !never(name));
    let listed = mixed(settings, job, |part| part != Part::Never);
    let at = listed.iter().position(|other| other.name == *agent).unwrap_or(0);
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

/// Who else could do a job, in the order in which they would step in; nobody who keeps failing.
pub fn others(settings: &Settings, job: Job, agent: &AgentName, failing: &Failing) -> Vec<AgentName> {
    after(settings, job, agent).into_iter().filter(|other| works(other, failing)).collect()
}

/// Whether anybody who does such work does not keep failing.
pub fn has_working(settings: &Settings, job: Job, failing: &Failing) -> bool {
    mixed(settings, job, |part| part != Part::Never).iter().any(|agent| works(&agent.name, failing))
}

/// Whether somebody else could be asked.
pub fn has_others(settings: &Settings, job: Job) -> bool {
    let able = mixed(settings, job, |part| part != Part::Never);
    able.len() > 1 || able.iter().any(|agent| agent.stronger.is_some())
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
    let mut able = takers(settings, Job::Review);
    if !able.iter().any(|agent| works(&agent.name, failing)) {
        able = mixed(settings, Job::Review, |part| part != Part::Never);
    }
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
