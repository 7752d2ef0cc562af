//! Whether a value fits a compiled schema, and what a model reads where it does
//! not.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use super::value::{canonical, compare, equal, is_multiple};
use super::{Bounds, Node, Range, Rules, Type};

/// Violations reported at once, so that a model can repair them in one go.
const MAX_VIOLATIONS: usize = 5;

/// Characters of an offending value that a message shows.
const SHOWN_CHARS: usize = 40;

/// Bytes of a message about one form within a message about several: without a
/// bound, nested choices would double it at every level.
const MAX_REASON: usize = 500;

/// Nodes that are checked for one value. A recursive schema with choices can
/// ask for more than any time suffices for.
const MAX_STEPS: u32 = 500_000;

/// Nodes within nodes: what the stack of a WebAssembly core holds with ease.
const MAX_DEPTH: u32 = 400;

/// One check of one value.
pub(super) struct Check<'a> {
    nodes: &'a [Node],
    steps: u32,
    depth: u32,
    /// A bound was reached: what was found means nothing.
    given_up: bool,
}

impl<'a> Check<'a> {
    pub(super) fn new(nodes: &'a [Node]) -> Self {
        Self {
            nodes,
            steps: 0,
            depth: 0,
            given_up: false,
        }
    }

    /// Checks `instance` against the root.
    pub(super) fn run(mut self, instance: &Value, path: &str) -> Result<(), Vec<String>> {
        let mut violations = Vec::new();
        if let Some(root) = self.nodes.first() {
            self.node(root, instance, path, &mut violations);
        }
        if self.given_up {
            return Err(vec![format!(
                "{path}: nested too deeply, or in too many ways, to be checked; give a simpler value"
            )]);
        }
        if violations.is_empty() {
            return Ok(());
        }
        violations.truncate(MAX_VIOLATIONS);
        Err(violations)
    }

    pub(super) fn fits(&mut self, node: &Node, instance: &Value) -> bool {
        let mut violations = Vec::new();
        self.node(node, instance, "", &mut violations);
        violations.is_empty()
    }

    fn node(&mut self, node: &Node, instance: &Value, path: &str, out: &mut Vec<String>) {
        if self.steps == MAX_STEPS || self.depth == MAX_DEPTH {
            self.given_up = true;
        }
        if self.given_up {
            return;
        }
        self.steps += 1;
        self.depth += 1;
        match node {
            Node::Any => {}
            Node::Never => out.push(format!("{path}: not allowed")),
            Node::Rules(rules) => self.rules(rules, instance, path, out),
        }
        self.depth -= 1;
    }

    fn rules(&mut self, rules: &Rules, instance: &Value, path: &str, out: &mut Vec<String>) {
        if out.len() >= MAX_VIOLATIONS || rules.nullable && instance.is_null() {
            return;
        }
        if let Some(types) = &rules.types {
            let actual = Type::of(instance);
            if !types.iter().any(|expected| expected.admits(actual)) {
                let names: Vec<_> = types.iter().map(|expected| expected.name()).collect();
                out.push(expected(path, &names.join(" or "), instance));
                return;
            }
        }
        if let Some(values) = &rules.enumeration
            && !values.iter().any(|value| equal(value, instance))
        {
            let values: Vec<_> = values.iter().map(Value::to_string).collect();
            let values = format!("one of {}", values.join(", "));
            out.push(expected(path, &values, instance));
        }
        if let Some(value) = &rules.constant
            && !equal(value, instance)
        {
            out.push(expected(path, &value.to_string(), instance));
        }
        match instance {
            Value::Number(number) => {
                rules.value.check(number, path, out);
                if let Some(of) = &rules.multiple_of
                    && !is_multiple(number, of)
                {
                    out.push(format!("{path}: expected a multiple of {of}, got {number}"));
                }
            }
            Value::String(text) => {
                let length = text.chars().count();
                rules.length.check(length, "characters", path, out);
                if let Some(pattern) = &rules.pattern
                    && !pattern.matches(text)
                {
                    let what = format!("text that matches `{}`", pattern.source());
                    out.push(expected(path, &what, instance));
                }
            }
            Value::Array(items) => self.array(rules, items, path, out),
            Value::Object(object) => self.object(rules, object, path, out),
            Value::Null | Value::Bool(_) => {}
        }
        self.combined(rules, instance, path, out);
    }

    fn array(&mut self, rules: &Rules, items: &[Value], path: &str, out: &mut Vec<String>) {
        rules.item_count.check(items.len(), "items", path, out);
        let prefix = rules.prefix.len();
        if matches!(rules.items, Some(Node::Never)) && items.len() > prefix {
            let got = items.len();
            out.push(format!(
                "{path}: expected at most {prefix} items, got {got}"
            ));
        }
        for (index, item) in items.iter().enumerate() {
            match rules.prefix.get(index).or(rules.items.as_ref()) {
                Some(Node::Never) if index >= prefix => {}
                Some(node) => self.node(node, item, &format!("{path}[{index}]"), out),
                None => {}
            }
        }
        if rules.unique {
            let mut seen = BTreeSet::new();
            let again = items.iter().position(|item| !seen.insert(canonical(item)));
            if let Some(index) = again {
                let again = format!("{path}[{index}] is there already");
                out.push(format!("{path}: expected items that differ, {again}"));
            }
        }
        if let Some(node) = &rules.contains {
            let fitting = items.iter().filter(|item| self.fits(node, item)).count();
            let unit = "items of the form that `contains` gives";
            rules.contained.check(fitting, unit, path, out);
        }
    }

    fn object(
        &mut self,
        rules: &Rules,
        object: &Map<String, Value>,
        path: &str,
        out: &mut Vec<String>,
    ) {
        rules
            .property_count
            .check(object.len(), "properties", path, out);
        for name in &rules.required {
            if !object.contains_key(name) {
                out.push(format!("{path}: missing required property \"{name}\""));
            }
        }
        for (name, needed) in &rules.dependent_required {
            let missing = needed.iter().find(|needed| !object.contains_key(*needed));
            if let Some(missing) = missing.filter(|_| object.contains_key(name)) {
                out.push(format!(
                    "{path}: missing property \"{missing}\", which \"{name}\" requires"
                ));
            }
        }
        for (name, value) in object {
            let below = format!("{path}.{name}");
            if let Some(node) = &rules.property_names {
                let name = Value::from(name.as_str());
                self.node(node, &name, &format!("{path}: property name"), out);
            }
            let mut known = false;
            if let Some((_, node)) = rules.properties.iter().find(|(known, _)| known == name) {
                known = true;
                self.node(node, value, &below, out);
            }
            for (pattern, node) in &rules.pattern_properties {
                if pattern.matches(name) {
                    known = true;
                    self.node(node, value, &below, out);
                }
            }
            match &rules.additional {
                _ if known => {}
                None | Some(Node::Any) => {}
                Some(Node::Never) => out.push(format!(
                    "{path}: unknown property \"{name}\", known are {}",
                    rules.known_properties()
                )),
                Some(node) => self.node(node, value, &below, out),
            }
        }
    }

    fn combined(&mut self, rules: &Rules, instance: &Value, path: &str, out: &mut Vec<String>) {
        let nodes = self.nodes;
        let referred = rules.reference.and_then(|number| nodes.get(number));
        for node in referred.into_iter().chain(rules.all_of.iter().flatten()) {
            self.node(node, instance, path, out);
        }
        if let Some(nodes) = &rules.any_of {
            let reasons = self.reasons(nodes, instance, path);
            if reasons.len() == nodes.len() {
                out.push(none_fits(path, &reasons));
            }
        }
        if let Some(nodes) = &rules.one_of {
            let reasons = self.reasons(nodes, instance, path);
            match nodes.len() - reasons.len() {
                1 => {}
                0 => out.push(none_fits(path, &reasons)),
                fitting => out.push(format!(
                    "{path}: fits {fitting} of the forms of which exactly one must fit"
                )),
            }
        }
        if let Some(node) = &rules.not
            && self.fits(node, instance)
        {
            out.push(format!("{path}: has a form that `not` forbids"));
        }
        if let Some(condition) = &rules.condition {
            let node = match self.fits(&condition.test, instance) {
                true => &condition.then,
                false => &condition.otherwise,
            };
            if let Some(node) = node {
                self.node(node, instance, path, out);
            }
        }
        for (name, node) in &rules.dependent_schemas {
            if instance.get(name).is_some() {
                self.node(node, instance, path, out);
            }
        }
    }

    /// Why each form that does not fit does not. Every form is checked once, so
    /// that nested choices do not multiply.
    fn reasons(&mut self, nodes: &[Node], instance: &Value, path: &str) -> Vec<String> {
        let reasons = nodes.iter().filter_map(|node| {
            let mut violations = Vec::new();
            self.node(node, instance, path, &mut violations);
            violations.into_iter().next()
        });
        reasons.collect()
    }
}

impl Rules {
    fn known_properties(&self) -> String {
        let names = self
            .properties
            .iter()
            .map(|(name, _)| format!("\"{name}\""));
        let patterns = self
            .pattern_properties
            .iter()
            .map(|(pattern, _)| format!("what matches `{}`", pattern.source()));
        let known: Vec<_> = names.chain(patterns).collect();
        match known.is_empty() {
            true => "none".to_owned(),
            false => known.join(", "),
        }
    }
}

fn none_fits(path: &str, reasons: &[String]) -> String {
    let shown: Vec<_> = reasons
        .iter()
        .take(MAX_VIOLATIONS)
        .map(|reason| match reason.len() <= MAX_REASON {
            true => reason.clone(),
            false => format!("{}…", &reason[..reason.floor_char_boundary(MAX_REASON)]),
        })
        .collect();
    format!("{path}: fits no allowed form ({})", shown.join("; or "))
}

impl Bounds {
    fn check(&self, number: &Number, path: &str, violations: &mut Vec<String>) {
        use Ordering::{Equal, Greater, Less};
        let rules = [
            (&self.minimum, "at least", [Greater, Equal]),
            (&self.maximum, "at most", [Less, Equal]),
            (&self.above, "more than", [Greater, Greater]),
            (&self.below, "less than", [Less, Less]),
        ];
        for (bound, words, allowed) in rules {
            if let Some(bound) = bound
                && !allowed.contains(&compare(number, bound))
            {
                violations.push(format!("{path}: expected {words} {bound}, got {number}"));
            }
        }
    }
}

impl Range {
    fn check(self, count: usize, unit: &str, path: &str, violations: &mut Vec<String>) {
        let count = count as u64;
        if let Some(min) = self.min.filter(|min| count < *min) {
            violations.push(format!(
                "{path}: expected at least {min} {unit}, got {count}"
            ));
        }
        if let Some(max) = self.max.filter(|max| count > *max) {
            violations.push(format!(
                "{path}: expected at most {max} {unit}, got {count}"
            ));
        }
    }
}

fn expected(path: &str, what: &str, instance: &Value) -> String {
    let actual = Type::of(instance).name();
    let text = match instance {
        Value::Null => return format!("{path}: expected {what}, got null"),
        Value::Array(_) | Value::Object(_) => {
            return format!("{path}: expected {what}, got {actual}");
        }
        // Long strings are cut before they are copied.
        Value::String(text) => {
            let shown: String = text.chars().take(SHOWN_CHARS + 1).collect();
            Value::String(shown).to_string()
        }
        other => other.to_string(),
    };
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{path}: expected {what}, got {actual} {shown}")
}
