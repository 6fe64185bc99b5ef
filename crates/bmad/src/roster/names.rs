//! Which agent a name means. Short names are convenient and may be ambiguous; then the error lists the long ones.

use std::fmt;

use super::{Member, Roster};

/// Why a name does not identify an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unnamed {
    /// The long names of all agents that it could mean.
    Ambiguous { candidates: Vec<String> },
    /// The long name of the agent with the most similar name.
    Unknown { nearest: Option<String> },
}

impl fmt::Display for Unnamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unnamed::Ambiguous { candidates } => write!(f, "it could be {}", candidates.join(" or ")),
            Unnamed::Unknown { nearest: Some(nearest) } => {
                write!(f, "nobody is called so; did you mean `{nearest}`?")
            }
            Unnamed::Unknown { nearest: None } => f.write_str("nobody is called so"),
        }
    }
}

impl Member {
    /// The id without the common prefix of agent ids: `dev`.
    pub fn short(&self) -> &str {
        self.id.strip_prefix("bmad-agent-").unwrap_or(&self.id)
    }

    /// A name that only one agent has: `bmm:dev`.
    pub fn qualified(&self) -> String {
        match self.module.as_str() {
            "" => self.id.clone(),
            module => format!("{module}:{}", self.short()),
        }
    }

    /// The names that contain the module or are ids.
    fn long(&self) -> Vec<String> {
        let (module, short) = (&self.module, self.short());
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
    fn own(&self) -> [&str; 3] {
        [self.short(), &self.name, &self.title]
    }
}

impl Roster {
    /// Finds an agent by its long name (`bmm:dev`, `bmad-agent-dev`), otherwise by its short name, its own (`Amelia`) or its
    /// title.
    pub fn named(&self, said: &str) -> Result<&Member, Unnamed> {
        let said = folded(said.trim().trim_start_matches(['/', '@']));
        let is = |name: &str| !name.is_empty() && folded(name) == said;
        // An id identifies an agent even if it looks like the short name of another one.
        let ids = self
            .members
            .iter()
            .filter(|member| is(&member.skill) || is(&member.id) && member.id != member.short());
        let long = self.members.iter().filter(|member| member.long().iter().any(|name| is(name)));
        let own = self.members.iter().filter(|member| member.own().into_iter().any(is));
        // The kinds of names are tried from the most to the least specific; the first kind that matches decides.
        for found in [ids.collect::<Vec<_>>(), long.collect(), own.collect()] {
            match found.as_slice() {
                [] => {}
                [one] => return Ok(one),
                several => {
                    let candidates = several.iter().map(|member| member.qualified()).collect();
                    return Err(Unnamed::Ambiguous { candidates });
                }
            }
        }
        Err(Unnamed::Unknown { nearest: self.nearest(&said) })
    }

    fn nearest(&self, said: &str) -> Option<String> {
        let near = |member: &Member| {
            let names = member.own().map(folded).into_iter().chain([folded(&member.qualified())]);
            names.filter(|name| !name.is_empty()).map(|name| distance(said, &name)).min()
        };
        let all = self.members.iter().filter_map(|member| Some((near(member)?, member)));
        let (far, member) = all.min_by_key(|(far, _)| *far)?;
        // Two wrong letters are a typing error, or a third of the letters in a longer name.
        (far <= (said.chars().count() / 3).max(2)).then(|| member.qualified())
    }
}

fn folded(name: &str) -> String {
    name.trim().to_lowercase()
}

/// The number of letters that must change to turn one text into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    // Only one row of the table is kept at a time: the cell above and the diagonal are enough.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(100).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != *y)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::roster;

    const TEAM: &str = "name,displayName,title,module,canonicalId\n\
        dev,Amelia,Developer,bmm,bmad-dev\n\
        architect,Winston,Architect,bmm,\n\
        dev,Rex,Game Developer,bmgd,\n\
        architect,Cloud,Game Architect,bmgd,\n\
        bmad-agent-writer,Paige,Technical Writer,bmm,\n\
        coach,Cloud,Coach,cis,\n";

    #[test]
    fn a_name_means_one_agent_or_says_whom_it_could_mean() {
        let roster = roster(TEAM);
        let said = |name: &str| match roster.named(name) {
            Ok(member) => member.qualified(),
            Err(why) => why.to_string(),
        };
        for (name, meant) in [
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
            ("writr", "nobody is called so; did you mean `bmm:writer`?"),
            ("helicopter", "nobody is called so"),
            ("", "nobody is called so"),
        ] {
            assert_eq!(said(name), meant, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_name_gets_an_answer(name in "\\PC{0,40}") {
            let _ = roster(TEAM).named(&name);
        }
    }
}
