//! A form that an agent wants to be filled in: its fields, and whether what was typed is what the agent takes.
//!
//! Source: the protocol's page on elicitation, and `ElicitationSchema` of its schema.

use std::collections::BTreeMap;

use url::Url;

/// Longest pattern that is tried, in bytes; a longer one is not asked for.
const MAX_PATTERN: usize = 1_000;

/// A form.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Form {
    /// Above the fields.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What is asked for, in the agent's order.
    pub fields: Vec<Field>,
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name in the answer.
    pub name: String,
    /// What the user reads.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// Whether there is no answer without it.
    pub is_required: bool,
    /// What may be in it.
    pub kind: FieldKind,
    /// What is in it before the user has done anything.
    pub default: Option<Given>,
}

/// What may be in a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// A text.
    Text {
        /// Fewest characters.
        min: Option<u64>,
        /// Most characters.
        max: Option<u64>,
        /// A regular expression that must be found in it.
        pattern: Option<String>,
        /// What kind of text it is.
        format: Option<Format>,
    },
    /// A number; the bounds are included.
    Number(Option<f64>, Option<f64>),
    /// A whole number; the bounds are included.
    Integer(Option<i64>, Option<i64>),
    /// Yes or no.
    Boolean,
    /// One of these.
    One(Vec<Choice>),
    /// Some of these: what there is, the fewest, the most.
    Many(Vec<Choice>, Option<u64>, Option<u64>),
    /// A kind that this version does not know, as the agent calls it.
    Unknown(String),
}

/// What a text has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An email address.
    Email,
    /// A URI.
    Uri,
    /// A day, as `YYYY-MM-DD`.
    Date,
    /// A moment, as RFC 3339 writes it.
    DateTime,
}

/// Something to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What is sent.
    pub value: String,
    /// What the user reads.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
}

/// What the user put into a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// Typed, or the value of a choice.
    Text(String),
    /// On or off.
    Switch(bool),
    /// The values of some choices.
    Many(Vec<String>),
}

/// What is sent for a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue {
    /// A text, or the value of a choice.
    Text(String),
    /// A number.
    Number(f64),
    /// A whole number.
    Integer(i64),
    /// Yes or no.
    Boolean(bool),
    /// The values of some choices.
    Many(Vec<String>),
}

/// The answer to a form, by the names of the fields.
pub type Filled = Vec<(String, FieldValue)>;

impl Form {
    /// What is sent if the user has given this.
    ///
    /// # Errors
    /// What is wrong with which field, in the form's order.
    pub fn check(&self, given: &BTreeMap<String, Given>) -> Result<Filled, Vec<(String, String)>> {
        let (mut filled, mut wrong) = (Filled::new(), Vec::new());
        for field in &self.fields {
            match field.check(given.get(&field.name)) {
                Ok(value) => filled.extend(value.map(|value| (field.name.clone(), value))),
                Err(problem) => wrong.push((field.name.clone(), problem)),
            }
        }
        if wrong.is_empty() { Ok(filled) } else { Err(wrong) }
    }
}

impl Field {
    /// `None` for a field that stays empty.
    fn check(&self, given: Option<&Given>) -> Result<Option<FieldValue>, String> {
        let given = given.filter(|given| !matches!(given, Given::Text(text) if text.trim().is_empty()));
        let value = match (&self.kind, given) {
            (FieldKind::Unknown(kind), _) if self.is_required => {
                return Err(format!("this cannot be asked for here: it is of the unknown type {kind}"));
            }
            (FieldKind::Unknown(_), _) => return Ok(None),
            (FieldKind::Many(choices, min, max), given) => {
                let chosen = match given {
                    Some(Given::Many(chosen)) => chosen.as_slice(),
                    _ => &[],
                };
                let chosen: Vec<String> = choices
                    .iter()
                    .filter(|choice| chosen.contains(&choice.value))
                    .map(|choice| choice.value.clone())
                    .collect();
                if chosen.is_empty() && !self.is_required {
                    return Ok(None);
                }
                within(chosen.len() as u64, *min, *max, "of these")?;
                return Ok(Some(FieldValue::Many(chosen)));
            }
            (_, None) if self.is_required => return Err("this is needed".to_owned()),
            (_, None) => return Ok(None),
            (FieldKind::Boolean, Some(Given::Switch(on))) => FieldValue::Boolean(*on),
            (FieldKind::One(choices), Some(Given::Text(text))) => {
                let choice = choices.iter().find(|choice| choice.value == *text);
                FieldValue::Text(choice.ok_or("this is none of the choices")?.value.clone())
            }
            (FieldKind::Integer(min, max), Some(Given::Text(text))) => {
                let number: i64 = text.trim().parse().map_err(|_| "this must be a whole number")?;
                within(number, *min, *max, "")?;
                FieldValue::Integer(number)
            }
            (FieldKind::Number(min, max), Some(Given::Text(text))) => {
                let number: f64 = text.trim().parse().map_err(|_| "this must be a number")?;
                if !number.is_finite() {
                    return Err("this must be a number".to_owned());
                }
                within(number, *min, *max, "")?;
                FieldValue::Number(number)
            }
            (FieldKind::Text { min, max, pattern, format }, Some(Given::Text(text))) => {
                within(text.chars().count() as u64, *min, *max, "characters")?;
                matches_pattern(text, pattern.as_deref())?;
                format.map_or(Ok(()), |format| format.check(text))?;
                FieldValue::Text(text.clone())
            }
            (_, Some(_)) => return Err("this is of another kind than was asked for".to_owned()),
        };
        Ok(Some(value))
    }
}

/// Checks bounds, both of which are included. `what` is counted, if anything is.
fn within<T: PartialOrd + std::fmt::Display + Copy>(
    value: T,
    min: Option<T>,
    max: Option<T>,
    what: &str,
) -> Result<(), String> {
    let said = |bound: &str, limit: T| Err(format!("at {bound} {limit} {what}").trim_end().to_owned());
    match (min, max) {
        (Some(min), _) if value < min => said("least", min),
        (_, Some(max)) if value > max => said("most", max),
        _ => Ok(()),
    }
}

/// The cost of the match is bounded by the sizes of both. A pattern that means something only to other engines is the agent's
/// to check.
fn matches_pattern(text: &str, pattern: Option<&str>) -> Result<(), String> {
    let Some(pattern) = pattern.filter(|pattern| pattern.len() <= MAX_PATTERN) else { return Ok(()) };
    match regex_lite::Regex::new(pattern) {
        Ok(known) if !known.is_match(text) => Err(format!("this must match {pattern}")),
        _ => Ok(()),
    }
}

impl Format {
    fn check(self, text: &str) -> Result<(), String> {
        let (is_right, wanted) = match self {
            Self::Email => (is_email(text), "an email address"),
            Self::Uri => (Url::parse(text).is_ok(), "a URI, such as https://example.org"),
            Self::Date => (is_date(text), "a day, such as 2030-12-31"),
            Self::DateTime => (is_date_time(text), "a moment, such as 2030-12-31T23:59:00Z"),
        };
        if is_right { Ok(()) } else { Err(format!("this must be {wanted}")) }
    }
}

fn is_email(text: &str) -> bool {
    let Some((user, host)) = text.rsplit_once('@') else { return false };
    let is_clean = !text.contains(char::is_whitespace) && !text.contains(char::is_control);
    is_clean && !user.is_empty() && !host.is_empty() && !host.starts_with('.') && !host.ends_with('.')
}

/// RFC 3339, `full-date`.
fn is_date(text: &str) -> bool {
    let [year, month, day] = text.split('-').collect::<Vec<_>>()[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2)) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// RFC 3339, `date-time`.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't', ' ']) else { return false };
    let (clock, zone) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => return false,
    };
    let is_zone = match zone.split_at(1) {
        ("Z" | "z", "") => true,
        ("+" | "-", offset) => is_clock(offset, 2),
        _ => false,
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    is_date(date) && is_clock(clock, 3) && is_fraction && is_zone
}

/// Hours and minutes, and seconds if there are three parts; the last second may be one that was put in.
fn is_clock(text: &str, parts: usize) -> bool {
    let numbers: Vec<Option<u32>> = text.split(':').map(|part| digits(part, 2)).collect();
    let limits = [23, 59, 60];
    numbers.len() == parts
        && numbers.iter().zip(limits).all(|(number, limit)| number.is_some_and(|number| number <= limit))
}

fn digits(text: &str, count: usize) -> Option<u32> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(kind: FieldKind, is_required: bool) -> Field {
        Field { name: "f".into(), title: "F".into(), description: None, is_required, kind, default: None }
    }

    fn text(format: Option<Format>) -> FieldKind {
        FieldKind::Text { min: None, max: None, pattern: None, format }
    }

    #[track_caller]
    fn check(kind: FieldKind, given: &str) -> Result<Option<FieldValue>, String> {
        field(kind, true).check(Some(&Given::Text(given.to_owned())))
    }

    #[test]
    fn what_is_typed_becomes_what_was_asked_for() {
        assert_eq!(check(text(None), " a b "), Ok(Some(FieldValue::Text(" a b ".into()))));
        assert_eq!(check(FieldKind::Integer(Some(1), Some(9)), " 7 "), Ok(Some(FieldValue::Integer(7))));
        assert_eq!(check(FieldKind::Integer(Some(1), Some(9)), "10"), Err("at most 9".into()));
        assert_eq!(check(FieldKind::Integer(None, None), "1.5"), Err("this must be a whole number".into()));
        assert_eq!(check(FieldKind::Number(Some(0.5), None), "0.25"), Err("at least 0.5".into()));
        assert_eq!(check(FieldKind::Number(None, None), "NaN"), Err("this must be a number".into()));
        assert_eq!(check(FieldKind::Number(None, None), "1e3"), Ok(Some(FieldValue::Number(1000.0))));
        assert_eq!(check(text(None), "  "), Err("this is needed".into()));
        let bounded = FieldKind::Text { min: Some(2), max: Some(3), pattern: Some("^[a-zä]+$".into()), format: None };
        assert_eq!(check(bounded.clone(), "ä"), Err("at least 2 characters".into()));
        assert_eq!(check(bounded.clone(), "äää"), Ok(Some(FieldValue::Text("äää".into()))));
        assert_eq!(check(bounded.clone(), "A1"), Err("this must match ^[a-zä]+$".into()));
        // What only other engines know is not held against the user.
        let foreign = FieldKind::Text { min: None, max: None, pattern: Some("(?=x)".into()), format: None };
        assert_eq!(check(foreign, "y"), Ok(Some(FieldValue::Text("y".into()))));
        assert_eq!(field(text(None), false).check(None), Ok(None));
        assert_eq!(
            field(FieldKind::Boolean, true).check(Some(&Given::Switch(false))),
            Ok(Some(FieldValue::Boolean(false)))
        );
        assert_eq!(field(FieldKind::Unknown("colour".into()), false).check(None), Ok(None));
        assert!(field(FieldKind::Unknown("colour".into()), true).check(None).is_err());
    }

    #[test]
    fn only_what_there_is_can_be_chosen() {
        let choice = |value: &str| Choice { value: value.into(), title: value.to_uppercase(), description: None };
        let choices = vec![choice("a"), choice("b"), choice("c")];
        assert_eq!(check(FieldKind::One(choices.clone()), "b"), Ok(Some(FieldValue::Text("b".into()))));
        assert_eq!(check(FieldKind::One(choices.clone()), "B"), Err("this is none of the choices".into()));
        let many = |min, max, required: bool, given: &[&str]| {
            let given = Given::Many(given.iter().map(|&value| value.to_owned()).collect());
            field(FieldKind::Many(choices.clone(), min, max), required).check(Some(&given))
        };
        let two = FieldValue::Many(vec!["a".into(), "c".into()]);
        assert_eq!(many(Some(1), Some(2), true, &["c", "nothing", "a"]), Ok(Some(two)));
        assert_eq!(many(Some(1), None, true, &[]), Err("at least 1 of these".into()));
        assert_eq!(many(Some(1), None, false, &[]), Ok(None));
        assert_eq!(many(None, Some(1), false, &["a", "b"]), Err("at most 1 of these".into()));
    }

    #[test]
    fn texts_of_a_format_are_of_it() {
        for (format, right, wrong) in [
            (Format::Email, vec!["a@b", "a.b+c@example.org"], vec!["a", "@b", "a@", "a b@c", "a@b."]),
            (Format::Uri, vec!["https://example.org/a?b#c", "mailto:a@b"], vec!["example.org", "http://", ""]),
            (
                Format::Date,
                vec!["2024-02-29", "2000-02-29", "2030-12-31"],
                vec!["2023-02-29", "1900-02-29", "2030-13-01", "2030-1-1", "2030-04-31", "x", "2030-00-10"],
            ),
            (
                Format::DateTime,
                vec!["2030-12-31T23:59:60Z", "2030-12-31t00:00:00.25+02:00", "2030-12-31 10:00:00-00:30"],
                vec![
                    "2030-12-31",
                    "2030-12-31T10:00Z",
                    "2030-12-31T24:00:00Z",
                    "2030-12-31T10:00:00",
                    "2030-12-31T10:00:00.Z",
                ],
            ),
        ] {
            for text in right {
                assert_eq!(format.check(text), Ok(()), "{text}");
            }
            for text in wrong {
                assert!(format.check(text).is_err(), "{text}");
            }
        }
    }
}
