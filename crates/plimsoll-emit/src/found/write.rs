//! The scenario, from all that was gathered.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use plimsoll_fleet::{Catalog, nearest};
use plimsoll_scenario::builtin;

use super::draft::{Draft, Gathered, Place, ProviderDraft, Public, Said, clip};
use super::flags::quoted;
use super::join;
use super::lines::Lines;
use super::pool::{Around, pool};
use super::{Found, FoundFile, scale};

/// Writes the scenario.
pub(super) fn write(mut gathered: Gathered, files: &[FoundFile], as_of: Date) -> Found {
    let catalog: &Catalog = builtin();
    let named = join::pools(&mut gathered, catalog);
    let moved = join::scalers(&mut gathered);
    let mut warnings = std::mem::take(&mut gathered.warnings);
    let mut taken = BTreeSet::new();
    let titles: Vec<String> =
        gathered.pools.iter().map(|draft| unique(&draft.title(), "pool", &mut taken)).collect();
    let hosted: Vec<String> = gathered
        .providers
        .iter()
        .map(|draft| unique(&draft.name, "provider", &mut taken))
        .collect();
    let mut targets: BTreeMap<String, String> = BTreeMap::new();
    for (draft, title) in gathered.providers.iter().zip(&hosted) {
        targets.insert(draft.name.clone(), title.clone());
    }
    for (name, at) in &named {
        targets.insert(name.clone(), titles[*at].clone());
    }
    let roles = roles(&gathered.pools, &titles, catalog, &mut warnings);
    let classes = classes(&gathered, &titles, &hosted, &targets, &roles);

    let mut body = Lines::default();
    for class in &classes {
        class_lines(class, &gathered, &titles, &mut body);
    }
    let everywhere = classes.iter().flat_map(|class| class.to.iter().map(|(to, _, _)| to));
    let everywhere: BTreeSet<&String> = everywhere.collect();
    if everywhere.len() > 1 || classes.len() > 1 || !hosted.is_empty() && !titles.is_empty() {
        for class in &classes {
            route_lines(class, &mut body);
        }
    }
    let regions: BTreeSet<&str> = gathered
        .pools
        .iter()
        .filter_map(|own| own.region.as_ref())
        .map(|s| s.value.as_str())
        .collect();
    let all = gathered.pools.iter().all(|own| own.region.is_some());
    let region = regions.first().filter(|_| regions.len() == 1 && all && valid(regions.first()));
    if regions.len() > 1 {
        let regions: Vec<&str> = regions.iter().copied().collect();
        warnings.push(format!(
            "pools are in {}; which users are near which is not known, so no region is written",
            regions.join(" and ")
        ));
    }
    for (i, draft) in gathered.pools.iter().enumerate() {
        let role = roles[i]
            .as_ref()
            .map(|(said, decode)| (said.clone(), decode.map(|decode| titles[decode].as_str())));
        let around = Around { title: &titles[i], role, region: region.is_some() };
        pool(draft, &around, catalog, &mut body, &mut warnings);
    }
    match region {
        Some(name) => {
            body.plain("");
            body.plain("[[region]]");
            let place = gathered.pools.iter().find_map(|own| Some(&own.region.as_ref()?.place));
            body.set(
                &format!("region.{name}"),
                "name",
                quoted(name),
                place.unwrap_or(&Place::default()),
            );
        }
        None if !titles.is_empty() && regions.is_empty() => {
            body.plain("");
            body.ask(
                "region".to_owned(),
                "Where does it run? Prices differ from region to region.",
                "[[region]]\nname = \"us-east-1\"",
            );
        }
        None => {}
    }
    for (draft, title) in gathered.providers.iter().zip(&hosted) {
        provider_lines(draft, title, catalog, &mut body);
    }
    autoscaling(&gathered, &titles, &moved, &mut body, &mut warnings);
    body.plain("");
    body.ask(
        "budget.monthly".to_owned(),
        "What may it cost a month? No cap is checked otherwise.",
        "[budget]\nmonthly = \"$50,000\"",
    );

    let mut lines = Lines::default();
    head(files, as_of, &mut lines);
    lines.append(body);
    lines.settle(&mut warnings);
    let mut top = Lines::default();
    preface(files, &warnings, &gathered.passed_over, &mut top);
    top.append(lines);
    Found {
        scenario: top.text(false),
        example: top.text(true),
        values: top.values(),
        questions: top.questions(),
        passed_over: gathered.passed_over,
        warnings,
    }
}

fn valid(name: Option<&&str>) -> bool {
    name.is_some_and(|name| cleaned(name) == **name)
}

fn preface(files: &[FoundFile], warnings: &[String], passed_over: &[String], lines: &mut Lines) {
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    lines.comment(&format!("A scenario of Plimsoll, from {}.", names.join(", ")));
    lines.comment("Each line says where it was found. Lines after `# ?` are what no file says: take the `#` away and put in your own numbers.");
    lines.comment("  plimsoll check scenario.toml       what is still missing");
    lines.comment("  plimsoll review scenario.toml      the answer");
    for (title, list) in [("Look at this first:", warnings), ("Passed over:", passed_over)] {
        if !list.is_empty() {
            lines.plain("#");
            lines.comment(title);
        }
        for line in list {
            lines.comment(&format!("- {line}"));
        }
    }
}

fn head(files: &[FoundFile], as_of: Date, lines: &mut Lines) {
    let first = files.first().map_or("", |file| file.name.as_str());
    lines.plain("");
    lines.plain("[study]");
    lines.plain(format!("name = {}", quoted(&format!("From {}", clip(first, 60)))));
    lines.plain(format!("as_of = {as_of}                    # the day that stands for today"));
}

/// What a name of a scenario may hold.
fn cleaned(name: &str) -> String {
    let fine =
        |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '@' | ':' | '+' | '%' | ' ');
    let text: String = name.chars().map(|c| if fine(c) { c } else { '-' }).collect();
    let mut out = String::new();
    for c in text.trim().chars() {
        if out.len() + c.len_utf8() > 56 {
            break;
        }
        out.push(c);
    }
    out.trim().to_owned()
}

fn unique(name: &str, otherwise: &str, taken: &mut BTreeSet<String>) -> String {
    let clean = cleaned(name);
    let clean = if clean.is_empty() { otherwise.to_owned() } else { clean };
    let numbered = (2..).map(|i| format!("{clean}-{i}"));
    let free = std::iter::once(clean.clone()).chain(numbered).find(|name| !taken.contains(name));
    let free = free.unwrap_or(clean);
    taken.insert(free.clone());
    free
}

type Role = Option<(Said, Option<usize>)>;

/// Prefill pools with the one pool that decodes the same model; roles that do not pair up are told, and left out.
fn roles(
    pools: &[Draft],
    titles: &[String],
    catalog: &Catalog,
    warnings: &mut Vec<String>,
) -> Vec<Role> {
    let is = |at: usize, role: &str| pools[at].role.as_ref().is_some_and(|said| said.value == role);
    let mut roles: Vec<Role> = vec![None; pools.len()];
    for at in 0..pools.len() {
        let Some(said) = pools[at].role.clone().filter(|_| is(at, "prefill")) else { continue };
        let same = |other: &usize| {
            is(*other, "decode") && join::same_model(&pools[at], &pools[*other], catalog)
        };
        let decode: Vec<usize> = (0..pools.len()).filter(same).collect();
        match decode.as_slice() {
            [decode] => {
                let own = pools[*decode].role.clone().unwrap_or_else(|| said.clone());
                roles[at] = Some((said, Some(*decode)));
                roles[*decode] = Some((own, None));
            }
            several => warnings.push(format!(
                "pool `{}` only prefills ({}), and {} pools decode the same model; its role is left out",
                titles[at],
                said.place,
                several.len()
            )),
        }
    }
    roles
}

/// Demand that is asked about: what goes to one name.
struct ClassDraft {
    name: String,
    origin: String,
    /// Each with its share and where that was said.
    to: Vec<(String, f64, Place)>,
    fallback: Vec<String>,
}

fn classes(
    gathered: &Gathered,
    titles: &[String],
    hosted: &[String],
    targets: &BTreeMap<String, String>,
    roles: &[Role],
) -> Vec<ClassDraft> {
    let mut taken = BTreeSet::new();
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut classes = Vec::new();
    // What only decodes is reached through the pool that prefills for it.
    let front = |title: &String| {
        let at = titles.iter().position(|own| own == title)?;
        let prefill = roles
            .iter()
            .position(|role| role.as_ref().is_some_and(|(_, decode)| *decode == Some(at)))?;
        Some(titles[prefill].clone())
    };
    let place_of = |name: &str| {
        let title = targets.get(name)?;
        Some(front(title).unwrap_or_else(|| title.clone()))
    };
    let public_of = |name: &str| gathered.publics.iter().find(|public| public.name == name);
    for public in &gathered.publics {
        let Public { name, place, to, fallback } = public;
        let all: f64 = to.iter().map(|own| own.value.1).sum();
        let mut shares: Vec<(String, f64, Place)> = Vec::new();
        for own in to {
            let Some(target) = place_of(&own.value.0) else { continue };
            let share = if all > 0.0 { own.value.1 / all } else { 1.0 };
            match shares.iter_mut().find(|(other, _, _)| *other == target) {
                Some(other) => other.1 += share,
                None => shares.push((target, share, own.place.clone())),
            }
        }
        if shares.is_empty() {
            continue;
        }
        let mut then: Vec<String> = Vec::new();
        for said in fallback {
            let direct = place_of(&said.value);
            let other = || place_of(&public_of(&said.value)?.to.first()?.value.0);
            if let Some(target) = other().or(direct)
                && !then.contains(&target)
            {
                then.push(target);
            }
        }
        reached.extend(shares.iter().map(|(to, _, _)| to.clone()));
        reached.extend(then.iter().cloned());
        let name = unique(name, "class", &mut taken);
        classes.push(ClassDraft { name, origin: place.to_string(), to: shares, fallback: then });
    }
    let pools = titles.iter().zip(&gathered.pools).map(|(title, own)| (title, &own.place));
    let others = hosted.iter().zip(&gathered.providers).map(|(title, own)| (title, &own.place));
    for (title, place) in pools.chain(others) {
        let decodes = front(title).is_some();
        if !reached.contains(title) && !decodes {
            let to = vec![(title.clone(), 1.0, place.clone())];
            let name = unique(title, "class", &mut taken);
            classes.push(ClassDraft { name, origin: place.short(), to, fallback: Vec::new() });
        }
    }
    classes
}

fn class_lines(class: &ClassDraft, gathered: &Gathered, titles: &[String], lines: &mut Lines) {
    let name = &class.name;
    let table = format!("class.{name}");
    let pool = titles.iter().position(|title| class.to.iter().any(|(to, _, _)| to == title));
    let context = pool.and_then(|at| gathered.pools[at].count("max_model_len"));
    // An example that the pool would accept.
    let unit = context.unwrap_or(131_072).clamp(16, 8192) / 16;
    lines.plain("");
    lines.plain("[[class]]");
    lines.set_from(&table, "name", quoted(name), class.origin.clone());
    lines.need(
        format!("{table}.rate"),
        "How many tasks a second, averaged over the week?",
        "rate = \"5 req/s\"",
    );
    lines.need(
        format!("{table}.prompt"),
        "How long are prompts, in tokens, cached ones included? Median and tail, not the mean.",
        format!("prompt = {{ p50 = {}, p95 = {} }}", (unit * 2).max(1), unit * 6),
    );
    lines.need(
        format!("{table}.output"),
        "How long are answers, in tokens?",
        format!("output = {{ p50 = {}, p95 = {} }}", (unit / 2).max(1), unit.max(2)),
    );
    lines.ask(
        format!("{table}.cache_hit"),
        "Which share of prompt tokens is served from the prefix cache, as measured? None is assumed.",
        "cache_hit = \"30%\"",
    );
    lines.ask(
        format!("{table}.slo"),
        "What makes an answer good? Without it, only that it comes.",
        "slo = { ttft = \"1s\", tpot = \"50ms\" }",
    );
}

fn route_lines(class: &ClassDraft, lines: &mut Lines) {
    let mut left = 1.0f64;
    for (i, (to, share, place)) in class.to.iter().enumerate() {
        // The last one takes what rounding leaves.
        let last = i + 1 == class.to.len();
        let share = if last { left } else { (share * 1e4).round() / 1e4 };
        let share = (share.max(0.0) * 1e4).round() / 1e4;
        left -= share;
        lines.plain("");
        lines.plain("[[route]]");
        let table = format!("route.{}", class.name);
        lines.set_from(&table, "class", format!("[{}]", quoted(&class.name)), class.origin.clone());
        lines.set(&table, "to", quoted(to), place);
        if class.to.len() > 1 {
            lines.set(&table, "share", format!("{share}"), place);
        }
        let then: Vec<String> =
            class.fallback.iter().filter(|other| *other != to).map(|other| quoted(other)).collect();
        if !then.is_empty() {
            lines.set_from(
                &table,
                "fallback",
                format!("[{}]", then.join(", ")),
                class.origin.clone(),
            );
        }
    }
}

fn provider_lines(draft: &ProviderDraft, title: &str, catalog: &Catalog, lines: &mut Lines) {
    let table = format!("provider.{title}");
    lines.plain("");
    lines.plain("[[provider]]");
    lines.set(&table, "name", quoted(title), &draft.place);
    lines.set(&table, "provider", quoted(&draft.provider.value), &draft.provider.place);
    lines.set(&table, "model", quoted(&draft.model.value), &draft.model.place);
    for (key, said) in &draft.keys {
        lines.set(&table, key, said.value.clone(), &said.place);
    }
    let own = catalog
        .token_prices
        .iter()
        .filter(|price| price.provider.eq_ignore_ascii_case(&draft.provider.value));
    let models: Vec<&str> = own.map(|price| price.model.as_str()).collect();
    if !models.contains(&draft.model.value.as_str()) {
        let near = nearest(&draft.model.value, models.iter().copied());
        let near = near
            .first()
            .map_or(String::new(), |near| format!(" The catalogue has the price of `{near}`."));
        for (key, example, what) in
            [("input", "$3/Mtok", "A prompt"), ("output", "$15/Mtok", "An output")]
        {
            if !draft.keys.contains_key(key) {
                lines.need(
                    format!("{table}.{key}"),
                    format!("{what} token costs how much?{near}"),
                    format!("{key} = {}", quoted(example)),
                );
            }
        }
    }
    if !["rpm", "tpm", "concurrency"].iter().any(|key| draft.keys.contains_key(key)) {
        lines.ask(
            format!("{table}.rpm"),
            "What are its limits a minute? None are assumed.",
            "rpm = 500\ntpm = 2_000_000",
        );
    }
    for remark in &draft.remarks {
        lines.comment(remark);
    }
}

fn autoscaling(
    gathered: &Gathered,
    titles: &[String],
    moved: &[Option<usize>],
    lines: &mut Lines,
    warnings: &mut Vec<String>,
) {
    let room = |at: &usize| {
        gathered.pools[*at].range.as_ref().is_some_and(|range| range.value.0 < range.value.1)
    };
    let own = gathered.scalers.iter().zip(moved);
    let mut own = own.filter_map(|(scaler, at)| Some((scaler, at.filter(|at| room(at))?)));
    let Some((first, at)) = own.next() else { return };
    let mut pools = vec![titles[at].as_str()];
    for (scaler, at) in own {
        let values = |keys: &BTreeMap<&'static str, Said>| -> Vec<(&'static str, String)> {
            keys.iter().map(|(key, said)| (*key, said.value.clone())).collect()
        };
        if values(&scaler.keys) == values(&first.keys) {
            pools.push(&titles[at]);
        } else {
            warnings.push(format!(
                "{} differs from {}; a scenario has one `[autoscaling]`, so that pool `{}` keeps its limits but is not moved",
                scaler.place, first.place, titles[at]
            ));
        }
    }
    lines.plain("");
    lines.plain("[autoscaling]");
    let list: Vec<String> = pools.iter().map(|pool| quoted(pool)).collect();
    lines.set("autoscaling", "pools", format!("[{}]", list.join(", ")), &first.place);
    for (key, said) in &first.keys {
        lines.set("autoscaling", key, said.value.clone(), &said.place);
    }
    if !first.keys.contains_key("signal") {
        lines.ask(
            "autoscaling.signal".to_owned(),
            "What does it look at, and which value of that does it steer to?",
            "signal = \"in-flight\"\ntarget = 32",
        );
    }
    let unread = scale::unread(first);
    if !unread.is_empty() {
        lines.comment("It also looks at what is not understood here, or has no key:");
        for line in unread {
            lines.comment(&format!("  {line}"));
        }
    }
}
