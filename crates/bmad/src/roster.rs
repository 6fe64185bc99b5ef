//! `_bmad/_config/agent-manifest.csv`: the project's own team, as personas for a party.
//!
//! Columns are found by their names, since every era has others. Latest BMAD has no such file; its agents stand in
//! `config.toml`, which is not read yet. Whether a roster is big enough for a party is not decided here.

use std::collections::BTreeSet;

use tribunal_core::{
    plan::Persona,
    text::{cut, fold_line},
};

use crate::csv;

/// Where the file stands in a project.
pub const ROSTER_PATH: &str = "_bmad/_config/agent-manifest.csv";

/// More than this nobody needs to choose from.
const MOST: usize = 40;
const NAME_LENGTH: usize = 60;
const FOCUS_LENGTH: usize = 120;
/// `&#x10ffff;`
const LONGEST_ENTITY: usize = 10;

/// What a manifest comes to: whoever could be read, and what could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    pub personas: Vec<Persona>,
    /// Each a sentence about the file, without its name.
    pub remarks: Vec<String>,
}

pub fn roster(text: &str) -> Roster {
    let table = csv::parse(text);
    let mut roster = Roster::default();
    if let Some(line) = table.unclosed {
        roster.remarks.push(format!("has a quote in line {line} that is never closed"));
    }
    let Some((head, rows)) = table.rows.split_first() else {
        if table.unclosed.is_none() {
            roster.remarks.push("is empty".into());
        }
        return roster;
    };
    let head: Vec<String> = head.iter().map(|name| name.trim().to_lowercase()).collect();
    if !NAMES.iter().any(|name| head.iter().any(|column| column == name)) {
        roster.remarks.push("has no column `title`, `displayName` or `name`".into());
        return roster;
    }
    let mut known = BTreeSet::new();
    for row in rows {
        let row = Row { head: &head, fields: row };
        let Some(persona) = row.persona().filter(|_| !row.is_meta()) else { continue };
        if known.insert(persona.name.to_lowercase()) && known.len() <= MOST {
            roster.personas.push(persona);
        }
    }
    let left = known.len() - roster.personas.len();
    if left > 0 {
        roster.remarks.push(format!("names more than {MOST} personas; {left} are left out"));
    }
    roster
}

/// What a persona is called by, and what it looks after: the first column that says something.
const NAMES: [&str; 3] = ["title", "displayname", "name"];
const FOCUSES: [&str; 3] = ["role", "capabilities", "identity"];

struct Row<'a> {
    head: &'a [String],
    fields: &'a [String],
}

impl Row<'_> {
    fn get(&self, column: &str) -> String {
        let index = self.head.iter().position(|name| name == column);
        index.and_then(|index| self.fields.get(index)).map(|field| plain(field)).unwrap_or_default()
    }

    fn first(&self, columns: [&str; 3]) -> String {
        columns.iter().map(|column| self.get(column)).find(|text| !text.is_empty()).unwrap_or_default()
    }

    fn persona(&self) -> Option<Persona> {
        let name = self.first(NAMES);
        let focus = self.first(FOCUSES);
        (!name.is_empty()).then(|| Persona::new(cut(&name, NAME_LENGTH), cut(&focus, FOCUS_LENGTH)))
    }

    /// Whoever leads the others or builds BMAD itself has nothing to say about a text.
    fn is_meta(&self) -> bool {
        let leads = |text: &str| text.to_lowercase().contains("orchestrator");
        let name = self.get("name").to_lowercase();
        name == "bmad-master" || self.get("module") == "bmb" || leads(&name) || leads(&self.get("title"))
    }
}

/// One line without entities, doubled quotes and control characters.
fn plain(field: &str) -> String {
    let mut text = fold_line(&decoded(field));
    while text.contains("\"\"") {
        text = text.replace("\"\"", "\"");
    }
    text
}

/// The entities of HTML that BMAD's installer writes, and numbers. Once: `&amp;quot;` is the text `&quot;`.
fn decoded(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        // No entity is longer; a text of ampersands must not be searched to its end for each of them.
        let end = rest.bytes().take(LONGEST_ENTITY).position(|byte| byte == b';');
        let entity = end.and_then(|end| Some((character(&rest[1..end])?, end)));
        match entity {
            Some((c, end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

fn character(entity: &str) -> Option<char> {
    match entity {
        "quot" => Some('"'),
        "apos" => Some('\''),
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "nbsp" => Some(' '),
        _ => {
            let number = entity.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            code.ok().and_then(char::from_u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str) -> String {
        let roster = roster(text);
        let remarks = roster.remarks.iter().map(|remark| format!("[it {remark}]"));
        let personas = roster.personas.iter().map(ToString::to_string);
        personas.chain(remarks).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_manifest_of_the_first_era_is_read() {
        let text = "name,displayName,title,icon,role,identity,communicationStyle,principles,module,path\n\
            \"bmad-master\",\"BMad Master\",\"BMad Master Executor\",\"x\",\"Runs it all\",\"i\",\"c\",\"p\",\"core\",\"a.md\"\n\
            \"clerk\",\"Ada\",\"Billing Clerk\",\"x\",\"Invoices &amp; refunds\",\"i\",\"says &quot;no&quot;\",\"p\",\"bmm\",\"b.md\"\n\
            \"cook\",\"Ben\",\"Ship&apos;s Cook\",\"x\",\"\",\"Feeds\nforty\",\"c\",\"p\",\"bmm\",\"c.md\"\n";
        assert_eq!(drawn(text), "Billing Clerk (Invoices & refunds)\nShip's Cook (Feeds forty)");
    }

    #[test]
    fn columns_are_found_by_their_names_in_any_order() {
        let text = "\u{feff}canonicalId,capabilities,Name,displayName,title\r\n\
            x,\"nets, lines\",fisher,Cid,\r\n\
            y,,pilot,,\r\n\
            z,\"asks \"\"\"\"why?\"\"\"\" often\",sailor,Dan,Able Sailor\r\n\
            short\r\n";
        assert_eq!(drawn(text), "Cid (nets, lines)\npilot\nAble Sailor (asks \"why?\" often)");
    }

    #[test]
    fn who_leads_the_others_or_builds_bmad_takes_no_part_and_a_scrum_master_does() {
        let text = "name,title,role,module\n\
            bmad-master,Executor,r,core\nparty-orchestrator,Host,r,x\nlead,Workflow Orchestrator,r,x\n\
            agent-builder,Agent Building Expert,r,bmb\nsm,Scrum Master,Sprint Orchestrator,bmm\n";
        assert_eq!(drawn(text), "Scrum Master (Sprint Orchestrator)");
    }

    #[test]
    fn one_name_is_one_persona() {
        assert_eq!(drawn("title,role\nWriter,guides\nwriter,other\nCook,\n"), "Writer (guides)\nCook");
    }

    #[test]
    fn long_texts_and_long_lists_are_cut() {
        let row = |number: usize| format!("T{number},{}\n", "word ".repeat(100));
        let text = format!("title,role\n{}", (0..43).map(row).collect::<String>());
        let roster = roster(&text);
        assert_eq!(roster.personas.len(), MOST);
        assert!(roster.personas.iter().all(|persona| persona.focus.chars().count() <= FOCUS_LENGTH + 1));
        assert_eq!(roster.remarks, ["names more than 40 personas; 3 are left out"]);
    }

    #[test]
    fn what_is_no_manifest_is_said_and_what_can_be_read_is_kept() {
        for (text, drawn_as) in [
            ("", "[it is empty]"),
            ("path,hash\na,b\n", "[it has no column `title`, `displayName` or `name`]"),
            ("title,role\n", ""),
            (
                "title,role\nCook,food\n\"Clerk,x\nPilot,y\n",
                "Cook (food)\n[it has a quote in line 3 that is never closed]",
            ),
            ("\"", "[it has a quote in line 1 that is never closed]"),
        ] {
            assert_eq!(drawn(text), drawn_as, "{text:?}");
        }
    }

    #[test]
    fn entities_are_decoded_once() {
        for (text, meant) in [
            ("&lt;b&gt; &#39;x&#x27; &amp;quot;", "<b> 'x' &quot;"),
            ("R&D; a & b &unknown; &#xffffffff; &", "R&D; a & b &unknown; &#xffffffff; &"),
            ("a&#7;b\u{1b}[2J", "ab[2J"),
        ] {
            assert_eq!(plain(text), meant);
        }
    }
}
