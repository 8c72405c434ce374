//! A Prometheus that answers, one that does not, and what is none.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use insta::assert_snapshot;
use plimsoll_live::{Access, Answer, LiveError, Prometheus, Sample};

/// Answers each connection with the next of these pages, and tells what was asked.
fn serve(pages: Vec<(u16, &'static str, String)>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for (status, kind, page) in pages {
            let Ok((stream, _)) = listener.accept() else { return };
            let mut lines = BufReader::new(stream);
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                let read = lines.read_line(&mut line).unwrap_or(0);
                if let Some(given) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = given.trim().parse().unwrap_or(0);
                }
                head.push_str(&line);
                if read == 0 || line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            let _ = lines.read_exact(&mut body);
            let _ = tell.send(head + &String::from_utf8_lossy(&body));
            if kind == "slow" {
                // Until the client has given up and closed.
                let _ = lines.read(&mut [0]);
                continue;
            }
            let mut stream = lines.into_inner();
            let _ = write!(
                stream,
                "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                page.len()
            );
        }
    });
    (url, told)
}

fn access() -> Access {
    Access { bearer: None, timeout: Duration::from_secs(5), most_bytes: Access::MOST_BYTES }
}

fn at(url: &str) -> Prometheus {
    Prometheus::new(url, access()).expect("an address")
}

/// What a user is told when a page is the answer; ports differ from run to run.
fn told(status: u16, kind: &'static str, page: &str) -> String {
    let (url, _) = serve(vec![(status, kind, page.to_owned())]);
    let error = at(&url).instant("up{", None).expect_err("no answer");
    shown(&error, &url)
}

fn shown(error: &LiveError, url: &str) -> String {
    let text = format!("{error}\nhelp: {}", error.help());
    assert!(text.contains(url), "{text} does not name {url}");
    text.replace(url, "URL")
}

const JSON: &str = "application/json";

#[test]
fn what_is_wrong_is_told_apart() {
    assert_snapshot!(told(200, "text/html", "<!doctype html>\n<title>Grafana</title>"), @"
    URL: this is no Prometheus: it answers with a page of HTML
    help: the address of the server itself is wanted, not of a dashboard or a login page before it; `curl URL/api/v1/status/buildinfo` answers in JSON
    ");
    assert_snapshot!(told(200, JSON, "{\"took\": 3, \"hits\": []}"), @"
    URL: this is no Prometheus: it answers with JSON of another shape (missing field `status` at line 1 column 23)
    help: the address of the server itself is wanted, not of a dashboard or a login page before it; `curl URL/api/v1/status/buildinfo` answers in JSON
    ");
    assert_snapshot!(told(500, "text/plain", "upstream  connect\nerror"), @"
    URL: HTTP status 500: upstream connect error
    help: the server or a proxy before it is in trouble; try again, and ask for less time: `--since 1d`
    ");
    assert_snapshot!(told(401, "text/plain", ""), @"
    URL: HTTP status 401
    help: it wants credentials: `--prometheus-token-file FILE`, or a URL with `user:password@`
    ");
    let wrong = "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"1:4: parse error: unexpected end of input\"}";
    assert_snapshot!(told(400, JSON, wrong), @"
    URL: bad_data: 1:4: parse error: unexpected end of input; the query is `up{`
    help: paste the query into the server's own page to see where it is wrong
    ");
}

#[test]
fn who_does_not_answer_is_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let error = at(&url).instant("up", None).expect_err("nobody listens");
    assert_snapshot!(shown(&error, &url), @"
    URL: the connection was refused
    help: check the port, and that Prometheus runs; `kubectl port-forward svc/prometheus 9090` makes it `http://127.0.0.1:9090`
    ");

    let (url, _) = serve(vec![(200, "slow", String::new())]);
    let impatient = Access { timeout: Duration::from_millis(300), ..access() };
    let asked = Prometheus::new(&url, impatient).expect("an address");
    let error = asked.instant("up", None).expect_err("too slow");
    assert_snapshot!(shown(&error, &url), @"
    URL: no answer within 0.3 s
    help: wait longer with `--query-timeout 1s`, or ask for less time or fewer series: `--since 1d`, `--match namespace=prod`
    ");

    let error = at("http://prometheus.invalid:9090").ready().expect_err("no such name");
    assert!(matches!(error, LiveError::NoHost { .. }), "{error:?}");
}

#[test]
fn credentials_are_sent_and_never_shown() {
    let page = "{\"status\":\"success\",\"data\":{\"version\":\"2.42.0\"}}".to_owned();
    let (url, asked) = serve(vec![(200, JSON, page.clone()), (503, JSON, String::new())]);
    let url = url.replace("http://", "http://me:secret@") + "/prom/";
    let own = Prometheus::new(&url, Access { bearer: Some("token".to_owned()), ..access() });
    let own = own.expect("an address");
    assert_eq!(own.build_info().expect("its version"), "2.42.0");
    let head = asked.recv().expect("a question");
    assert!(head.starts_with("GET /prom/api/v1/status/buildinfo HTTP/1.1"), "{head}");
    assert!(head.to_ascii_lowercase().contains("authorization: bearer token"), "{head}");
    assert!(!own.ready().expect("an answer"));
    assert!(!own.name().contains("secret"));

    let (url, asked) = serve(vec![(403, "text/plain", String::new())]);
    let error = at(&url.replace("http://", "http://me:secret@")).build_info().expect_err("denied");
    assert!(!format!("{error} {}", error.help()).contains("secret"), "{error}");
    // `me:secret`.
    assert!(asked.recv().expect("a question").contains("Basic bWU6c2VjcmV0"));
    let error = Prometheus::new("ftp://me:secret@x", access()).expect_err("not http");
    assert_snapshot!(error, @"`ftp://x` is no address of a Prometheus: it begins with neither `http://` nor `https://`");
    assert!(Prometheus::new("prometheus:9090/graph", access()).is_err());
}

#[test]
fn values_that_are_no_quantity_are_none() {
    let page = "{\"status\":\"success\",\"warnings\":[\"a store is down\"],\"data\":{\"resultType\":\"vector\",\"result\":[\
        {\"metric\":{\"a\":\"1\"},\"value\":[1700000000.25,\"1.5\"]},\
        {\"metric\":{},\"value\":[1700000000,\"NaN\"]},{\"metric\":{},\"value\":[1700000000,\"+Inf\"]}]}}";
    let scalar = "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1700000000,\"7\"]}}";
    let (url, asked) = serve(vec![(200, JSON, page.to_owned()), (200, JSON, scalar.to_owned())]);
    let own = at(&url);
    let Answer::Vector(series) = own.instant("x", Some(1.7e9)).expect("an answer") else {
        panic!("a vector");
    };
    assert_eq!(series[0].1, Sample { at_ms: 1_700_000_000_250, value: Some(1.5) });
    assert_eq!(series[0].0["a"], "1");
    assert_eq!((series[1].1.value, series[2].1.value), (None, None));
    assert_eq!(own.warnings(), ["a store is down"]);
    assert!(asked.recv().expect("a question").contains("time=1700000000.000"));
    assert_eq!(own.instant("7", None).expect("an answer").single(), Some(7.0));
}

#[test]
fn long_ranges_are_asked_in_pieces_and_long_queries_as_forms() {
    let piece = |at: u32| {
        format!(
            "{{\"status\":\"success\",\"data\":{{\"resultType\":\"matrix\",\"result\":[{{\"metric\":{{\"a\":\"1\"}},\"values\":[[{at},\"{at}\"]]}}]}}}}"
        )
    };
    let (url, asked) =
        serve(vec![(200, JSON, piece(0)), (200, JSON, piece(600_000)), (200, JSON, piece(1))]);
    let own = at(&url);
    let found = own.range("x", 0.0, 1_199_940.0, 60.0).expect("an answer");
    let times: Vec<i64> = found[0].samples.iter().map(|own| own.at_ms).collect();
    assert_eq!((found.len(), times), (1, vec![0, 600_000_000]));
    let first = asked.recv().expect("a question");
    assert!(first.contains("start=0.000&end=599940.000&step=60.000"), "{first}");
    let second = asked.recv().expect("a question");
    assert!(second.contains("start=600000.000&end=1199940.000"), "{second}");

    let long = format!("x{{a=~\"{}\"}}", "b|".repeat(2_000));
    own.range(&long, 0.0, 60.0, 60.0).expect("an answer");
    let third = asked.recv().expect("a question");
    assert!(third.starts_with("POST /api/v1/query_range HTTP/1.1"), "{third}");
    assert!(third.contains("query=x%7Ba%3D~%22b%7Cb"), "{}", &third[..300]);
}

/// A hundred thousand series are read within the limit; twice the limit is refused before it is held.
#[test]
fn large_answers_are_read_and_larger_ones_refused() {
    let mut page =
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[".to_owned();
    for i in 0..100_000 {
        let comma = if i == 0 { "" } else { "," };
        write!(page, "{comma}{{\"metric\":{{\"__name__\":\"vllm:num_requests_running\",\"engine\":\"0\",\"instance\":\"10.0.{}.{}:8000\",\"model_name\":\"meta-llama/Llama-3.1-70B-Instruct\",\"namespace\":\"prod\",\"pod\":\"chat-{i}\"}},\"value\":[1700000000.123,\"{i}\"]}}", i / 250, i % 250).expect("a string grows");
    }
    page.push_str("]}}");
    let bytes = page.len() as u64;
    let (url, _) = serve(vec![(200, JSON, page.clone()), (200, JSON, page)]);
    let patient = Access { timeout: Access::TIMEOUT, ..access() };
    let asked = Prometheus::new(&url, patient.clone()).expect("an address");
    let Answer::Vector(series) = asked.instant("x", None).expect("an answer") else {
        panic!("a vector");
    };
    assert_eq!(series.len(), 100_000);
    let small = Access { most_bytes: bytes / 2, ..patient };
    let error = Prometheus::new(&url, small).expect("an address").instant("x", None);
    let error = error.expect_err("too large");
    assert!(matches!(error, LiveError::TooLarge { .. }), "{error:?}");
    assert_snapshot!(error.help(), @"ask for fewer series or less time: `--match namespace=prod`, `--model NAME`, `--since 1d`");
}
