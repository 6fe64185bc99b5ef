//! How a seat goes about its work: the methods of an elicitation, the personas and rounds of a party.
//!
//! Both are picked from the text under review by counting words, so that the same text always gets the same ones and a
//! journal can be replayed. Nothing here is said to an agent yet: templates in `agents` find the words.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::{cmp::Reverse, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::level::{Role, words};

/// What only some roles' briefs have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "plan", rename_all = "snake_case")]
pub enum Plan {
    /// Nothing of its own, or not yet picked.
    #[default]
    Plain,
    Party {
        personas: Vec<Persona>,
        /// Rounds of cross-examination.
        rounds: u32,
    },
    Elicitation {
        methods: Vec<Method>,
    },
}

/// Somebody a party lets speak: a role in a team, never a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Persona {
    pub name: String,
    /// What it looks after.
    pub focus: String,
}

/// A way of asking what a text should have answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    Assumptions,
    EdgeCases,
    FailureModes,
    Stakeholders,
    Constraints,
    Dependencies,
    FiveWhys,
}

words!(Method {
    Assumptions = "assumptions",
    EdgeCases = "edge cases",
    FailureModes = "failure modes",
    Stakeholders = "stakeholders",
    Constraints = "constraints",
    Dependencies = "dependencies",
    FiveWhys = "five whys",
});

/// A method with the beginnings of words that call for it.
const METHODS: [(Method, &[&str]); 7] = [
    (Method::Assumptions, &["assum", "expect", "should", "will", "always", "typical", "estimat", "believ"]),
    (Method::EdgeCases, &["limit", "maxim", "minim", "empty", "zero", "valid", "input", "format", "boundar"]),
    (Method::FailureModes, &["fail", "error", "timeout", "retr", "outage", "crash", "recover", "backup"]),
    (
        Method::Stakeholders,
        &["user", "customer", "team", "admin", "operator", "stakeholder", "persona", "role"],
    ),
    (
        Method::Constraints,
        &["must", "budget", "deadline", "compl", "regulat", "latenc", "performance", "legal"],
    ),
    (
        Method::Dependencies,
        &["depend", "integrat", "service", "vendor", "api", "library", "database", "third"],
    ),
    (Method::FiveWhys, &["because", "goal", "problem", "reason", "purpose", "value", "why", "vision"]),
];

/// A built-in persona: name, what it looks after, and the beginnings of words that call for it.
type Entry = (&'static str, &'static str, &'static [&'static str]);

const ROSTER: [Entry; 8] = [
    (
        "architect",
        "structure, boundaries, data flow, what cannot be changed later",
        &["architect", "component", "service", "database", "scal", "interface", "module", "schema"],
    ),
    (
        "product manager",
        "goals, scope, measures of success, what users get",
        &["goal", "user", "customer", "scope", "market", "metric", "requirement", "mvp", "release"],
    ),
    (
        "developer",
        "whether it can be built as written, hidden work, contradictions",
        &["implement", "code", "api", "function", "library", "endpoint", "build", "class"],
    ),
    (
        "tester",
        "what can be checked and how, limits, error paths",
        &["test", "accept", "criteri", "valid", "error", "edge", "expect", "verif"],
    ),
    (
        "security",
        "secrets, permissions, personal data, misuse",
        &["secur", "auth", "password", "token", "encrypt", "privac", "permission", "gdpr", "secret"],
    ),
    (
        "operations",
        "deployment, monitoring, failure, recovery, cost",
        &["deploy", "monitor", "backup", "outage", "latenc", "alert", "server", "recover", "rollback"],
    ),
    (
        "ux",
        "flows, wording, accessibility, the first five minutes",
        &["screen", "button", "click", "page", "accessib", "design", "form", "view", "journey"],
    ),
    (
        "writer",
        "terms, ambiguity, what a newcomer would misread",
        &["document", "guide", "term", "glossar", "describ", "section", "readme", "explain"],
    ),
];

/// How many personas or methods a plan has at least.
pub const LEAST: usize = 3;
/// And at most.
pub const MOST: usize = 5;

impl Plan {
    pub fn is_plain(&self) -> bool {
        *self == Plan::Plain
    }

    /// The plan for a seat of this role over this text, with our own roster and defaults.
    pub fn for_role(role: Role, text: &str) -> Plan {
        match role {
            Role::Party => Plan::party(text, &[], LEAST, 3),
            Role::Elicitation => Plan::elicitation(text, LEAST),
            _ => Plan::Plain,
        }
    }

    /// A party over this text: personas from the project's own roster, or from ours if it has none.
    pub fn party(text: &str, roster: &[Persona], least: usize, most_rounds: u32) -> Plan {
        let number = how_many(text, least);
        let personas = if roster.is_empty() {
            let called = ROSTER.map(|(name, focus, words)| (name, focus, words.to_vec()));
            let scores = scores(text, called.iter().map(|(_, _, words)| words.as_slice()));
            let picked = best(&scores, number).into_iter().map(|index| &ROSTER[index]);
            picked.map(|(name, focus, _)| Persona { name: (*name).into(), focus: (*focus).into() }).collect()
        } else {
            from_roster(text, roster, number)
        };
        let rounds = if number > LEAST { 3 } else { 2 };
        Plan::Party { personas, rounds: rounds.min(most_rounds).max(1) }
    }

    pub fn elicitation(text: &str, least: usize) -> Plan {
        let scores = scores(text, METHODS.iter().map(|(_, words)| *words));
        let picked = best(&scores, how_many(text, least)).into_iter().map(|index| METHODS[index].0);
        Plan::Elicitation { methods: picked.collect() }
    }
}

/// A longer text bears more points of view.
fn how_many(text: &str, least: usize) -> usize {
    let by_size = match text.len() {
        0..2_000 => 3,
        2_000..8_000 => 4,
        _ => 5,
    };
    by_size.max(least).clamp(LEAST, MOST)
}

/// A foreign roster brings no words of its own; those of its names and focuses are taken, short ones left out.
fn from_roster(text: &str, roster: &[Persona], number: usize) -> Vec<Persona> {
    let folded: Vec<Vec<String>> = roster.iter().map(calls).collect();
    let words: Vec<Vec<&str>> =
        folded.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
    let scores = scores(text, words.iter().map(Vec::as_slice));
    best(&scores, number).into_iter().map(|index| roster[index].clone()).collect()
}

fn calls(persona: &Persona) -> Vec<String> {
    let words = persona.name.split_whitespace().chain(persona.focus.split_whitespace());
    let words = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase());
    words.filter(|word| word.chars().count() > 3).collect()
}

/// How many words of the text begin with one of each list's words.
fn scores<'w>(text: &str, lists: impl Iterator<Item = &'w [&'w str]>) -> Vec<u32> {
    let mut starts: Vec<(&str, usize)> = Vec::new();
    let mut scores = Vec::new();
    for (index, list) in lists.enumerate() {
        starts.extend(list.iter().map(|start| (*start, index)));
        scores.push(0);
    }
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2) {
        let word = word.to_lowercase();
        for (_, index) in starts.iter().filter(|(start, _)| word.starts_with(start)) {
            scores[*index] += 1;
        }
    }
    scores
}

/// The positions of the highest scores, in their own order; equal ones by position.
fn best(scores: &[u32], number: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by_key(|index| Reverse(scores[*index]));
    order.truncate(number);
    order.sort_unstable();
    order
}

impl fmt::Display for Persona {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.focus.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{} ({})", self.name, self.focus)
        }
    }
}

impl Persona {
    pub fn new(name: impl ToString, focus: impl ToString) -> Persona {
        Persona { name: name.to_string(), focus: focus.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn names(plan: &Plan) -> Vec<String> {
        match plan {
            Plan::Party { personas, .. } => personas.iter().map(|persona| persona.name.clone()).collect(),
            Plan::Elicitation { methods } => methods.iter().map(ToString::to_string).collect(),
            Plan::Plain => vec![],
        }
    }

    #[test]
    fn the_text_calls_for_its_personas() {
        let text =
            "Passwords are encrypted; tokens need permissions. A deploy has a rollback, a backup and alerts.";
        assert_eq!(names(&Plan::for_role(Role::Party, text)), ["architect", "security", "operations"]);
    }

    #[test]
    fn the_text_calls_for_its_methods() {
        let text = "On timeout the service retries; errors and outages are recovered from the vendor's api.";
        assert_eq!(
            names(&Plan::for_role(Role::Elicitation, text)),
            ["assumptions", "failure modes", "dependencies"]
        );
    }

    #[test]
    fn a_longer_text_gets_more_of_them_but_never_more_than_five() {
        for (bytes, least, number, rounds) in
            [(0, 3, 3, 2), (1_999, 3, 3, 2), (2_000, 3, 4, 3), (8_000, 3, 5, 3), (0, 9, 5, 3), (0, 0, 3, 2)]
        {
            let text = "x".repeat(bytes);
            let plan = Plan::party(&text, &[], least, 3);
            let Plan::Party { personas, rounds: held } = &plan else { panic!() };
            assert_eq!((personas.len(), *held), (number, rounds), "{bytes} bytes, at least {least}");
            assert_eq!(names(&Plan::elicitation(&text, least)).len(), number);
        }
    }

    #[test]
    fn a_project_s_own_roster_comes_first() {
        let roster: Vec<Persona> = ["billing clerk", "fleet driver", "customs officer", "ship's cook"]
            .map(|name| Persona::new(name, ""))
            .to_vec();
        let plan = Plan::party("The customs officer and the cook wait for billing.", &roster, 3, 3);
        assert_eq!(names(&plan), ["billing clerk", "customs officer", "ship's cook"]);
        let few = Plan::party("text", &roster[..1], 3, 3);
        assert_eq!(names(&few), ["billing clerk"], "a roster of one is all there is");
    }

    #[test]
    fn only_parties_and_elicitations_have_a_plan() {
        let planned = Role::ALL.into_iter().filter(|role| !Plan::for_role(*role, "text").is_plain());
        assert_eq!(planned.collect::<Vec<_>>(), [Role::Party, Role::Elicitation]);
    }
}
