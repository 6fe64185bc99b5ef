//! Which agent a name means. Short names are convenient and may be ambiguous; then the error lists the long ones.

use std::fmt;

use super::{Roster, RosterMember};

/// Why a name does not identify an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentNameError {
    /// The long names of all agents that it could mean.
    Ambiguous { candidates: Vec<String> },
    /// The long name of the agent with the most similar name.
    Unknown { nearest: Option<String> },
}

impl fmt::Display for AgentNameError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentNameError::Ambiguous { candidates } => {
                write!(formatter, "it could be {}", candidates.join(" or "))
            }
            AgentNameError::Unknown { nearest: Some(nearest) } => {
                write!(formatter, "no agent has that name; did you mean `{nearest}`?")
            }
            AgentNameError::Unknown { nearest: None } => formatter.write_str("no agent has that name"),
        }
    }
}

impl RosterMember {
    /// The id without the common prefix of agent ids: `dev`.
    pub fn short_name(&self) -> &str {
        self.id.strip_prefix("bmad-agent-").unwrap_or(&self.id)
    }

    /// The name with the module, which tells agents with the same short name apart: `bmm:dev`.
    pub fn qualified_name(&self) -> String {
        match self.module.as_str() {
            "" => self.id.clone(),
            module => format!("{module}:{}", self.short_name()),
        }
    }

    /// The names that begin with `bmad-` or contain the module, and the ids.
    fn long_names(&self) -> Vec<String> {
        let (module, short) = (&self.module, self.short_name());
        let mut names = vec![self.skill.clone(), format!("bmad-agent-{short}"), format!("bmad-{short}")];
        if !module.is_empty() {
            names.extend([
                format!("{module}:{short}"),
                format!("{module}/{short}"),
                format!("bmad:{module}:agents:{short}"),
                format!("bmad-agent-{module}-{short}"),
            ]);
        }
        if self.id != short {
            names.push(self.id.clone());
        }
        names
    }

    /// The names that another agent may have, too.
    fn ambiguous_names(&self) -> [&str; 3] {
        [self.short_name(), &self.name, &self.title]
    }
}

impl Roster {
    /// Finds an agent by its long name (`bmm:dev`, `bmad-agent-dev`), otherwise by its short name, its own (`Amelia`) or its
    /// title.
    pub fn find_member(&self, wanted_name: &str) -> Result<&RosterMember, AgentNameError> {
        let wanted_name = fold_case(wanted_name.trim().trim_start_matches(['/', '@']));
        let is_wanted = |agent_name: &str| !agent_name.is_empty() && fold_case(agent_name) == wanted_name;
        // An id identifies an agent even if it is also a long name of another one.
        let by_id = self
            .members
            .iter()
            .filter(|member| is_wanted(&member.skill) || is_wanted(&member.id) && member.id != member.short_name());
        let by_long_name =
            self.members.iter().filter(|member| member.long_names().iter().any(|agent_name| is_wanted(agent_name)));
        let by_short_name = self.members.iter().filter(|member| member.ambiguous_names().into_iter().any(is_wanted));
        // The kinds of names are tried from the most to the least specific; the first kind that matches decides.
        for matching_members in [by_id.collect::<Vec<_>>(), by_long_name.collect(), by_short_name.collect()] {
            match matching_members.as_slice() {
                [] => {}
                [only_match] => return Ok(only_match),
                candidate_members => {
                    let candidates = candidate_members.iter().map(|member| member.qualified_name()).collect();
                    return Err(AgentNameError::Ambiguous { candidates });
                }
            }
        }
        Err(AgentNameError::Unknown { nearest: self.nearest_name(&wanted_name) })
    }

    fn nearest_name(&self, wanted_name: &str) -> Option<String> {
        let smallest_distance = |member: &RosterMember| {
            let names =
                member.ambiguous_names().map(fold_case).into_iter().chain([fold_case(&member.qualified_name())]);
            names
                .filter(|agent_name| !agent_name.is_empty())
                .map(|agent_name| edit_distance(wanted_name, &agent_name))
                .min()
        };
        let distances = self.members.iter().filter_map(|member| Some((smallest_distance(member)?, member)));
        let (letters_apart, member) = distances.min_by_key(|(letters_apart, _)| *letters_apart)?;
        // Two wrong letters are a typing error, or a third of the letters in a longer name.
        (letters_apart <= (wanted_name.chars().count() / 3).max(2)).then(|| member.qualified_name())
    }
}

fn fold_case(agent_name: &str) -> String {
    agent_name.trim().to_lowercase()
}

/// The number of letters that must change to turn one text into the other.
fn edit_distance(left_text: &str, right_text: &str) -> usize {
    let right_letters: Vec<char> = right_text.chars().collect();
    // Only one row of the table is kept at a time: the cell above and the diagonal are enough.
    let mut distances: Vec<usize> = (0..=right_letters.len()).collect();
    for (left_index, left_letter) in left_text.chars().take(100).enumerate() {
        let mut diagonal = distances[0];
        distances[0] = left_index + 1;
        for (right_index, right_letter) in right_letters.iter().enumerate() {
            let cell_above = distances[right_index + 1];
            distances[right_index + 1] = (diagonal + usize::from(left_letter != *right_letter))
                .min(cell_above + 1)
                .min(distances[right_index] + 1);
            diagonal = cell_above;
        }
    }
    distances[right_letters.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::roster::parse_roster;

    const TEAM_CSV: &str = "name,displayName,title,module,canonicalId\n\
        dev,Amelia,Developer,bmm,bmad-dev\n\
        architect,Winston,Architect,bmm,\n\
        dev,Rex,Game Developer,bmgd,\n\
        architect,Cloud,Game Architect,bmgd,\n\
        bmad-agent-writer,Paige,Technical Writer,bmm,\n\
        coach,Cloud,Coach,cis,\n";

    #[test]
    fn a_name_means_one_agent_or_lists_the_candidates() {
        let roster = parse_roster(TEAM_CSV);
        let resolve_name = |agent_name: &str| match roster.find_member(agent_name) {
            Ok(member) => member.qualified_name(),
            Err(error) => error.to_string(),
        };
        for (agent_name, expected) in [
            ("bmm:dev", "bmm:dev"),
            ("BMGD/dev", "bmgd:dev"),
            ("/bmad:bmm:agents:dev", "bmm:dev"),
            ("bmad-agent-bmgd-dev", "bmgd:dev"),
            ("bmad-agent-writer", "bmm:writer"),
            ("writer", "bmm:writer"),
            ("@Paige", "bmm:writer"),
            ("Game Architect", "bmgd:architect"),
            ("Architect", "it could be bmm:architect or bmgd:architect"),
            ("dev", "it could be bmm:dev or bmgd:dev"),
            ("cloud", "it could be bmgd:architect or cis:coach"),
            ("bmad-dev", "bmm:dev"),
            ("bmad-agent-dev", "it could be bmm:dev or bmgd:dev"),
            ("writr", "no agent has that name; did you mean `bmm:writer`?"),
            ("helicopter", "no agent has that name"),
            ("", "no agent has that name"),
        ] {
            assert_eq!(resolve_name(agent_name), expected, "{agent_name}");
        }
    }

    proptest! {
        #[test]
        fn any_name_gets_an_answer(name in "\\PC{0,40}") {
            let _ = parse_roster(TEAM_CSV).find_member(&name);
        }
    }
}
