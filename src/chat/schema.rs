//! Whether a value fits a JSON Schema: the keywords that endpoints accept for strict output, and a few more.
//!
//! A keyword that constrains and is not known here is refused when the schema is read, so that "it fits" is never said
//! of what was not checked.

use serde_json::{Map, Value};

/// A schema of which every keyword is known.
#[derive(Debug)]
pub(crate) struct Schema {
    root: Value,
}

/// How deep references and values may be nested.
const MAX_DEPTH: usize = 64;

const ANNOTATIONS: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "format",
    "deprecated",
    "readOnly",
    "writeOnly",
];

const KNOWN: &[&str] = &[
    "$ref",
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
];

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// Where it has something that is not a schema, or not known.
    pub(crate) fn new(root: &Value) -> Result<Self, String> {
        let schema = Self { root: root.clone() };
        schema.check(root, "", 0)?;
        Ok(schema)
    }

    fn check(&self, schema: &Value, at: &str, depth: usize) -> Result<(), String> {
        let fields = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(fields) => fields,
            _ => return Err(format!("at \"{at}\": a schema is an object")),
        };
        if depth > MAX_DEPTH {
            return Err(format!("at \"{at}\": it is nested too deeply"));
        }
        for (keyword, value) in fields {
            let here = format!("{at}/{keyword}");
            match keyword.as_str() {
                "properties" | "$defs" | "definitions" => {
                    let all = value.as_object().ok_or_else(|| format!("at \"{here}\": it has to be an object"))?;
                    for (name, sub) in all {
                        self.check(sub, &format!("{here}/{name}"), depth + 1)?;
                    }
                }
                "items" | "additionalProperties" | "not" => self.check(value, &here, depth + 1)?,
                "anyOf" | "oneOf" | "allOf" => {
                    let all = value.as_array().filter(|all| !all.is_empty());
                    for (number, sub) in
                        all.ok_or_else(|| format!("at \"{here}\": it has to be a list"))?.iter().enumerate()
                    {
                        self.check(sub, &format!("{here}/{number}"), depth + 1)?;
                    }
                }
                "$ref" => {
                    self.resolve(value).ok_or_else(|| format!("at \"{here}\": {value} leads nowhere in this file"))?;
                }
                "pattern" => {
                    let text = value.as_str().ok_or_else(|| format!("at \"{here}\": it has to be a string"))?;
                    regex(text).map_err(|error| format!("at \"{here}\": {error}"))?;
                }
                "type" => {
                    let names =
                        names(value).ok_or_else(|| format!("at \"{here}\": it has to be a name or a list of names"))?;
                    let known = ["object", "array", "string", "number", "integer", "boolean", "null"];
                    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
                        return Err(format!("at \"{here}\": there is no type \"{unknown}\""));
                    }
                }
                other if ANNOTATIONS.contains(&other) || KNOWN.contains(&other) => {}
                other => return Err(format!("at \"{at}\": the keyword \"{other}\" is not checked here")),
            }
        }
        Ok(())
    }

    fn resolve(&self, reference: &Value) -> Option<&Value> {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        self.root.pointer(&pointer.replace("%24", "$"))
    }

    /// Checks a value.
    ///
    /// # Errors
    /// Where it does not fit, and why.
    pub(crate) fn validate(&self, value: &Value) -> Result<(), String> {
        self.fits(&self.root, value, "", 0)
    }

    fn fits(&self, schema: &Value, value: &Value, at: &str, depth: usize) -> Result<(), String> {
        let fields = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Object(fields) => fields,
            _ => return Err(format!("\"{at}\" is not allowed")),
        };
        if depth > MAX_DEPTH {
            return Err(format!("\"{at}\" is nested too deeply"));
        }
        if let Some(target) = fields.get("$ref").and_then(|reference| self.resolve(reference)) {
            self.fits(target, value, at, depth + 1)?;
        }
        if let Some(types) = fields.get("type").and_then(names)
            && !types.iter().any(|name| is_type(value, name))
        {
            return Err(format!("\"{at}\" is not of type {}", types.join(" or ")));
        }
        if fields.get("enum").and_then(Value::as_array).is_some_and(|all| !all.iter().any(|one| same(one, value))) {
            return Err(format!("\"{at}\" is none of the allowed values"));
        }
        if fields.get("const").is_some_and(|wanted| !same(wanted, value)) {
            return Err(format!("\"{at}\" is not the allowed value"));
        }
        match value {
            Value::Object(object) => self.object_fits(fields, object, at, depth)?,
            Value::Array(items) => self.array_fits(fields, items, at, depth)?,
            Value::String(text) => string_fits(fields, text, at)?,
            Value::Number(_) => number_fits(fields, value, at)?,
            Value::Null | Value::Bool(_) => {}
        }
        self.combinations_fit(fields, value, at, depth)
    }

    fn combinations_fit(
        &self,
        fields: &Map<String, Value>,
        value: &Value,
        at: &str,
        depth: usize,
    ) -> Result<(), String> {
        let list = |name: &str| fields.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let count = |name: &str| list(name).iter().filter(|sub| self.fits(sub, value, at, depth + 1).is_ok()).count();
        for sub in list("allOf") {
            self.fits(sub, value, at, depth + 1)?;
        }
        if fields.contains_key("anyOf") && count("anyOf") == 0 {
            return Err(format!("\"{at}\" fits nothing in anyOf"));
        }
        if fields.contains_key("oneOf") && count("oneOf") != 1 {
            return Err(format!("\"{at}\" does not fit exactly one of oneOf"));
        }
        if fields.get("not").is_some_and(|sub| self.fits(sub, value, at, depth + 1).is_ok()) {
            return Err(format!("\"{at}\" fits what it must not"));
        }
        Ok(())
    }

    fn object_fits(
        &self,
        fields: &Map<String, Value>,
        object: &Map<String, Value>,
        at: &str,
        depth: usize,
    ) -> Result<(), String> {
        for name in fields.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                return Err(format!("\"{at}\" lacks \"{name}\""));
            }
        }
        in_range(fields, "minProperties", "maxProperties", object.len(), || format!("\"{at}\": its number of fields"))?;
        let properties = fields.get("properties").and_then(Value::as_object);
        for (name, value) in object {
            let here = format!("{at}/{name}");
            match properties.and_then(|properties| properties.get(name)).or_else(|| fields.get("additionalProperties"))
            {
                Some(Value::Bool(false)) => return Err(format!("\"{at}\" has \"{name}\", which is not allowed")),
                Some(schema) => self.fits(schema, value, &here, depth + 1)?,
                None => {}
            }
        }
        Ok(())
    }

    fn array_fits(&self, fields: &Map<String, Value>, items: &[Value], at: &str, depth: usize) -> Result<(), String> {
        in_range(fields, "minItems", "maxItems", items.len(), || format!("\"{at}\": its length"))?;
        if fields.get("uniqueItems") == Some(&Value::Bool(true))
            && items.iter().enumerate().any(|(number, item)| items[..number].iter().any(|before| same(before, item)))
        {
            return Err(format!("\"{at}\" has the same item twice"));
        }
        if let Some(schema) = fields.get("items") {
            for (number, item) in items.iter().enumerate() {
                self.fits(schema, item, &format!("{at}/{number}"), depth + 1)?;
            }
        }
        Ok(())
    }
}

fn string_fits(fields: &Map<String, Value>, text: &str, at: &str) -> Result<(), String> {
    in_range(fields, "minLength", "maxLength", text.chars().count(), || format!("\"{at}\": its length"))?;
    match fields.get("pattern").and_then(Value::as_str).map(regex) {
        Some(Ok(pattern)) if !pattern.is_match(text) => Err(format!("\"{at}\" does not match its pattern")),
        Some(Err(error)) => Err(error),
        _ => Ok(()),
    }
}

fn number_fits(fields: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
    let Some(number) = value.as_f64() else { return Ok(()) };
    let limit = |name: &str| fields.get(name).and_then(Value::as_f64);
    let out = limit("minimum").is_some_and(|least| number < least)
        || limit("maximum").is_some_and(|most| number > most)
        || limit("exclusiveMinimum").is_some_and(|least| number <= least)
        || limit("exclusiveMaximum").is_some_and(|most| number >= most);
    if out {
        return Err(format!("\"{at}\" is out of range"));
    }
    let uneven = |step: f64| {
        let quotient = number / step;
        (quotient - quotient.round()).abs() > 1e-9 * quotient.abs().max(1.0)
    };
    if limit("multipleOf").is_some_and(|step| step > 0.0 && uneven(step)) {
        return Err(format!("\"{at}\" is no multiple of its step"));
    }
    Ok(())
}

fn in_range(
    fields: &Map<String, Value>,
    least: &str,
    most: &str,
    count: usize,
    what: impl Fn() -> String,
) -> Result<(), String> {
    let limit = |name: &str| fields.get(name).and_then(Value::as_u64);
    let count = count as u64;
    if limit(least).is_some_and(|least| count < least) || limit(most).is_some_and(|most| count > most) {
        return Err(format!("{} is out of range", what()));
    }
    Ok(())
}

fn names(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => names.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        _ => value.is_null(),
    }
}

/// Equality of JSON: 1 and 1.0 are the same number.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => one == other,
    }
}

fn regex(pattern: &str) -> Result<regex_lite::Regex, String> {
    regex_lite::Regex::new(pattern).map_err(|error| format!("the pattern {pattern:?} is not understood: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, fitting: &[Value], others: &[Value]) {
        let schema = Schema::new(schema).unwrap();
        for value in fitting {
            assert_eq!(schema.validate(value), Ok(()), "{value}");
        }
        for value in others {
            assert!(schema.validate(value).is_err(), "{value} fits");
        }
    }

    #[test]
    fn objects() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": ["string", "null"]}},
            "required": ["a"], "additionalProperties": false});
        check(
            &schema,
            &[json!({"a": 1}), json!({"a": 1.0, "b": null})],
            &[json!({}), json!({"a": 1.5}), json!({"a": 1, "c": 2}), json!([]), json!(null)],
        );
        let places = Schema::new(&schema).unwrap().validate(&json!({"a": 1, "b": 5})).unwrap_err();
        assert_eq!(places, "\"/b\" is not of type string or null");
    }

    #[test]
    fn lists_texts_and_numbers() {
        let schema = json!({"type": "array", "items": {"type": "string", "pattern": "^[a-c]+$", "maxLength": 3}, "minItems": 1, "uniqueItems": true});
        check(
            &schema,
            &[json!(["a", "abc"])],
            &[json!([]), json!(["d"]), json!(["aaaa"]), json!(["a", "a"]), json!([1])],
        );
        let schema = json!({"type": "number", "minimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.1});
        check(&schema, &[json!(0), json!(0.3)], &[json!(-1), json!(1), json!(0.25), json!("0")]);
        check(&json!({"enum": ["a", 1]}), &[json!("a"), json!(1.0)], &[json!("b"), json!(null)]);
        check(&json!({"const": {"x": [1]}}), &[json!({"x": [1]})], &[json!({"x": []})]);
    }

    #[test]
    fn combinations_and_references() {
        let schema = json!({"$defs": {"node": {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["next"]}}, "$ref": "#/$defs/node"});
        check(
            &schema,
            &[json!({"next": null}), json!({"next": {"next": null}})],
            &[json!({}), json!({"next": {"next": 5}})],
        );
        check(
            &json!({"oneOf": [{"type": "integer"}, {"minimum": 5}], "not": {"const": 1}}),
            &[json!(2), json!(5.5)],
            &[json!(6), json!(1), json!(2.5)],
        );
        check(&json!({"allOf": [true, {"type": "string"}]}), &[json!("")], &[json!(1)]);
    }

    #[test]
    fn what_is_not_checked_is_refused() {
        for wrong in [
            json!({"if": {}}),
            json!({"type": "text"}),
            json!({"$ref": "#/nowhere"}),
            json!({"pattern": "("}),
            json!({"anyOf": []}),
            json!([]),
            json!({"properties": {"a": 5}}),
        ] {
            assert!(Schema::new(&wrong).is_err(), "{wrong}");
        }
        // A reference to itself ends.
        let endless = Schema::new(&json!({"$ref": "#"})).unwrap();
        assert!(endless.validate(&json!(1)).is_err());
    }
}
