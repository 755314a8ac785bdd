-- A small sweep's database, as a program with schema 1 wrote it (prompts cut short).
PRAGMA foreign_keys = OFF; -- tables come in no order
CREATE TABLE conflicts (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  source TEXT NOT NULL,
  row_hash TEXT NOT NULL,
  row TEXT NOT NULL CHECK (json_valid(row)),
  UNIQUE (key, row_hash)
) STRICT;
CREATE TABLE methods (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  label TEXT NOT NULL,
  json TEXT NOT NULL CHECK (json_valid(json))
) STRICT;
INSERT INTO "methods" VALUES(1,'70fb1d7d6f79f3a22a0924ce6159069d1b3eed1f8eed13930c01c4197e44fb58','full','full','{}');
INSERT INTO "methods" VALUES(3,'3dfd1c59356dffa0d6763a27567023068bb2aed27b79ba7ea1ff316224e1a2e1','streaming_llm','streaming_llm','{"adaptive_floor":0.2,"adaptive_normalize":false,"adaptive_rounding":"exact","allocation":"uniform","group_reduction":"mean","head_scope":"kv_head","kernel":7,"pool_order":"after_group","pooling":"none","pyramid_beta":20.0,"pyramid_rounding":"exact","sinks":4,"window":0}');
INSERT INTO "methods" VALUES(4,'67698557a16880092559ccb4141d26acdb33319fd4eaf438c237f10e4db527a6','snapkv','snapkv','{"adaptive_floor":0.2,"adaptive_normalize":false,"adaptive_rounding":"exact","allocation":"uniform","group_reduction":"mean","head_scope":"kv_head","kernel":7,"pool_order":"after_group","pooling":"max","pyramid_beta":20.0,"pyramid_rounding":"exact","query_window":0,"row_reduction":"mean","sinks":0,"variant":"paper","window":32}');
INSERT INTO "methods" VALUES(5,'35be028ba9cde02a06ddf16f55578ded5b898c3bb755ea54495495b8962abb6d','laq','laq','{"adaptive_floor":0.2,"adaptive_normalize":false,"adaptive_rounding":"exact","allocation":"uniform","compat":"corrected","draft_tokens":8,"first_stage":"snapkv","first_stage_budget":0,"first_stage_params":{},"group_reduction":"mean","head_scope":"kv_head","kernel":7,"pool_order":"after_group","pooling":"max","pyramid_beta":20.0,"pyramid_rounding":"exact","row_reduction":"mean","sinks":0,"stage2_window":0,"variant":"paper"}');
CREATE TABLE models (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  label TEXT NOT NULL,
  json TEXT NOT NULL CHECK (json_valid(json))
) STRICT;
INSERT INTO "models" VALUES(1,'b63d132745768731fe3dbc1fbbfcbaa5b841223a1a8c0847bbd25e8b5344fe91','SmolLM2-135M-Instruct','SmolLM2-135M-Instruct','{"config_hash":"5827382406639f71864d2388ad48fec63efc5e67f1ff8a5e9bb177514e009939","device":"cpu","dtype":"bfloat16","name":"SmolLM2-135M-Instruct","prefill_chunk":2048,"template_hash":"872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788","tokenizer_hash":"9ca9acddb6525a194ec8ac7a87f24fbba7232a9a15ffa1af0c1224fcd888e47c","weights_fingerprint":"00418185cf5171d2b82fc81cd0134e13927dd42e223c71378b31a1ffe099afa2"}');
CREATE TABLE prompt_texts (
  prompt_id INTEGER PRIMARY KEY REFERENCES prompts (id),
  text TEXT NOT NULL
) STRICT;
INSERT INTO "prompt_texts" VALUES(1,'<|im_start|>system
You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
<|im_start|>user
A special magic number is hidden within the following text. Make sure to memorize it. I will quiz you about the number afterwards.
The grass is green. The sky is blue. The sun is yellow [cut] gain.
The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.
What is the special magic number for determined-envelope mentioned in the provided text?<|im_end|>
<|im_start|>assistant
 The special magic number for determined-envelope mentioned in the provided text is');
INSERT INTO "prompt_texts" VALUES(4,'<|im_start|>system
You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
<|im_start|>user
Memorize and track the chain(s) of variable assignment hidden in the following text.

VAR IUL = 54131
The grass is green. The sky is blue. The sun is yellow. Here we go. There and back  [cut] ue. The sun is yellow. Here we go. There and back again.
Question: Find all variables that are assigned the value 97498 in the text above.<|im_end|>
<|im_start|>assistant
 Answer: According to the chain(s) of variable assignment in the text above, 5 variables are assigned the value 97498, they are: ');
CREATE TABLE prompts (
  id INTEGER PRIMARY KEY,
  sample_id INTEGER NOT NULL REFERENCES samples (id),
  model_id INTEGER NOT NULL REFERENCES models (id),
  protocol_id INTEGER NOT NULL REFERENCES protocols (id),
  prompt_hash TEXT NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  question_start INTEGER,
  UNIQUE (sample_id, model_id, protocol_id)
) STRICT;
INSERT INTO "prompts" VALUES(1,1,1,1,'5dd9dff12cd9ae3f544f96bbc4d46383178a2fbbcf0addd9bfd5b5071c11a12c',1915,NULL);
INSERT INTO "prompts" VALUES(4,4,1,1,'10d5a32e03ae2f7bf8720e95beae2e803f68de2e66571c4e35fea1e43678da7b',2001,NULL);
CREATE TABLE protocols (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  label TEXT NOT NULL,
  json TEXT NOT NULL CHECK (json_valid(json))
) STRICT;
INSERT INTO "protocols" VALUES(1,'a4af900776ce17269a58079013f856414da2e9e6fcdf8f13120efba12c7b18b7','ruler','ruler','{"answer_prefix":"begins the reply","chat_template":true,"control_characters":"newline","length_counted_with":"model","metric":"string_match (qa_1, qa_2: any reference; others: share of references)","min_new_tokens":0,"name":"ruler","stop_texts":[],"truncation":"none"}');
CREATE TABLE replies (
  result_id INTEGER PRIMARY KEY REFERENCES results (id) ON DELETE CASCADE,
  reply TEXT NOT NULL,
  token_ids BLOB NOT NULL
) STRICT;
INSERT INTO "replies" VALUES(1,' 4612365.',X'D801242621222326251E02');
INSERT INTO "replies" VALUES(5,' 11.',X'D80121211E02');
INSERT INTO "replies" VALUES(8,' 42.',X'D80124221E02');
INSERT INTO "replies" VALUES(11,' 4612365.',X'D801242621222326251E02');
INSERT INTO "replies" VALUES(40,' IUL ZDX EBL NUR YTF
The answer is: 5',X'D302A533F10D34489E03CF59BA03C525CE05868202C601F803AC17BA022AD8012502');
INSERT INTO "replies" VALUES(44,' I, II, III, IV, V, VI, VII, VIII, IX, X, XI, XII, XIII, XIV, XV',X'D3021C811D1CCC3F1CC04A1CCD051CE087011CEBA9011C88A8011CEEC4011CE1111CD8AE021CE0A6021CA5D4021CBEA1021CE11146');
INSERT INTO "replies" VALUES(47,' I, II, III, IV, V, VI, VII, VIII, IX, X, XI, XII, XIII, XIV, XV',X'D3021C811D1CCC3F1CC04A1CCD051CE087011CEBA9011C88A8011CEEC4011CE1111CD8AE021CE0A6021CA5D4021CBEA1021CE11146');
CREATE TABLE results (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  prompt_id INTEGER NOT NULL REFERENCES prompts (id),
  method_id INTEGER NOT NULL REFERENCES methods (id),
  budget TEXT NOT NULL,
  budget_entries INTEGER,
  question_aware INTEGER NOT NULL CHECK (question_aware IN (0, 1)),
  status TEXT NOT NULL CHECK (status IN ('ok', 'failed', 'skipped')),
  reason TEXT,
  score REAL,
  metric TEXT,
  stop_reason TEXT,
  new_tokens INTEGER,
  draft_tokens INTEGER,
  kept_min INTEGER,
  kept_max INTEGER,
  kept_mean REAL,
  kept_total INTEGER,
  cache_bytes INTEGER,
  prefill_s REAL,
  query_s REAL,
  score_s REAL,
  choose_s REAL,
  draft_s REAL,
  compact_s REAL,
  decode_s REAL,
  decode_steps INTEGER,
  arms_in_batch INTEGER,
  run_id INTEGER NOT NULL REFERENCES runs (id),
  created TEXT NOT NULL,
  CHECK ((status = 'ok') = (score IS NOT NULL)),
  CHECK ((status = 'ok') = (reason IS NULL))
) STRICT;
INSERT INTO "results" VALUES(1,'7511cdfc0b1248bf7354237dbb34f263',1,1,'full',NULL,1,'ok',NULL,100.0,'string_match_all','stop_id',10,0,1915,1915,1915.0,172350,47070720,4.04587148600001,0.0,0.0,0.0,0.0,1.80160000013529497664e-04,1.91819610999993983568e+00,9,13,1,'2026-11-29T21:22:31.981Z');
INSERT INTO "results" VALUES(5,'28bd0e95229c12c4bdef52b4e6831661',1,3,'64',64,1,'ok',NULL,0.0,'string_match_all','stop_id',5,0,64,64,64.0,5760,4423680,4.04587148600001,3.93e-07,5.92807000000000099484e-04,0.000642472,0.0,6.20074000039494421798e-04,1.91819610999993983568e+00,4,13,1,'2026-11-29T21:22:31.981Z');
INSERT INTO "results" VALUES(8,'c93d8fc95b4046a9b9431494addd5cff',1,4,'64',64,1,'ok',NULL,0.0,'string_match_all','stop_id',5,0,64,64,64.0,5760,4423680,4.04587148600001,3.8419e-05,2.39511819999999979458e-02,0.00075826,0.0,1.18033199998990312451e-03,1.91819610999993983568e+00,4,13,1,'2026-11-29T21:22:31.981Z');
INSERT INTO "results" VALUES(11,'02479fbe334016a63bfd6cdab01a00e1',1,5,'64',64,1,'ok',NULL,100.0,'string_match_all','stop_id',10,4,64,64,64.0,5760,4423680,4.04587148600001,5.2246e-05,0.007701652,0.001382726,5.50708063333333330824e-02,1.16017099992404837394e-03,1.91819610999993983568e+00,9,13,1,'2026-11-29T21:22:31.981Z');
INSERT INTO "results" VALUES(40,'577292dd6eb3556cf271bc2be0427f66',4,1,'full',NULL,1,'ok',NULL,0.0,'string_match_all','stop_id',19,0,2001,2001,2001.0,180090,46794240,4.00005695199990896071e+00,0.0,0.0,0.0,0.0,2.06662999971740646287e-04,8.76155323000034513825e-01,18,13,1,'2026-11-29T21:22:50.580Z');
INSERT INTO "results" VALUES(44,'102e99d97b124680d7a4d5d397ed5c41',4,3,'64',64,1,'ok',NULL,0.0,'string_match_all','max_new_tokens',30,0,64,64,64.0,5760,2165760,4.00005695199990896071e+00,3.82e-07,2.98077999999999906401e-04,0.000691031,0.0,6.37400999949022661894e-04,8.76155323000034513825e-01,29,13,1,'2026-11-29T21:22:50.581Z');
INSERT INTO "results" VALUES(47,'fbd51cb54b8535d16646941e3bf0b14b',4,4,'64',64,1,'ok',NULL,0.0,'string_match_all','max_new_tokens',30,0,64,64,64.0,5760,2165760,4.00005695199990896071e+00,4.8486e-05,0.029292466,9.26682000000000069897e-04,0.0,6.95826000082888640463e-04,8.76155323000034513825e-01,29,13,1,'2026-11-29T21:22:50.581Z');
INSERT INTO "results" VALUES(50,'ae586ea484ef689a2b76bd6be0b65f7e',4,5,'64',64,1,'failed','out of memory',NULL,'string_match_all','max_new_tokens',30,8,64,64,64.0,5760,2165760,4.00005695199990896071e+00,2.2727e-05,1.02212760000000013604e-02,0.001101325,0.069081243,6.06075999940003384836e-04,8.76155323000034513825e-01,29,13,1,'2026-11-29T21:22:50.581Z');
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  uuid TEXT NOT NULL UNIQUE,
  started TEXT NOT NULL,
  finished TEXT,
  outcome TEXT,
  version TEXT NOT NULL,
  git_commit TEXT NOT NULL,
  build_type TEXT NOT NULL,
  machine TEXT NOT NULL CHECK (json_valid(machine)),
  libraries TEXT NOT NULL CHECK (json_valid(libraries)),
  config TEXT NOT NULL CHECK (json_valid(config)),
  config_hash TEXT NOT NULL,
  command_line TEXT NOT NULL,
  shard TEXT NOT NULL
) STRICT;
INSERT INTO "runs" VALUES(1,'206383325d0a1aea43869de7119d5610','2026-11-29T21:22:25.417Z','2026-11-29T21:24:49.360Z','done','0.1.0','eb5c46abfb41','Release','{"cpu":"a CPU"}','{"compiler":"12.2.0","libtorch":"2.11.0","pcre2":"10.42","sqlite":"3.40.1"}','{"benchmarks":[{"lengths":[2048],"name":"ruler","samples":5,"seed":42,"tasks":["niah_single_1","niah_multikey_2","niah_multikey_3","vt","fwe"],"template":"model"}],"budgets":[64,128,256],"comment":"A first look: cheap methods, a draft method and the full cache on RULER at 2,048 tokens.","methods":["full","random","streaming_llm","snapkv","laq"],"model":"SmolLM2-135M-Instruct","name":"quickstart"}','2d23d99b07006d7f2217c39d72bdb3796a16127d428580cb26dccbaead9a9b93','kvlab run configs/quickstart.json --db quickstart.sqlite','1/1');
CREATE TABLE samples (
  id INTEGER PRIMARY KEY,
  benchmark TEXT NOT NULL,
  dataset TEXT NOT NULL,
  sample_key TEXT NOT NULL,
  task TEXT NOT NULL,
  length INTEGER NOT NULL,
  sample_index INTEGER NOT NULL,
  text_hash TEXT NOT NULL,
  reference_answers TEXT NOT NULL CHECK (json_valid(reference_answers)),
  extra TEXT NOT NULL CHECK (json_valid(extra)),
  UNIQUE (dataset, sample_key)
) STRICT;
INSERT INTO "samples" VALUES(1,'ruler','ruler-1/wonderwords@3869f4e1efd6','ruler/niah_single_1/2048/seed42/model/0','niah_single_1',2048,0,'5b785f6f52d013219a51b488ac17539a5cac4a7ad9605f65829524831dc63833','["4612365"]','{"depth":60.8}');
INSERT INTO "samples" VALUES(4,'ruler','ruler-1/generated@cc0df63df12b','ruler/vt/2048/seed42/model/0','vt',2048,0,'fd18cdf371cd78980e6f46ed19fed58f530f59caed4da1d4ff2fa3db9817db04','["ESJBM","FXJVW","FRKHB","UJNRV","IAWGP"]','{}');
CREATE TABLE selections (
  result_id INTEGER PRIMARY KEY REFERENCES results (id) ON DELETE CASCADE,
  kept BLOB NOT NULL
) STRICT;
CREATE INDEX results_for_reports ON results
  (prompt_id, method_id, budget, question_aware, status, score, metric);
CREATE INDEX results_not_ok ON results (status) WHERE status <> 'ok';
CREATE VIEW cells AS
  SELECT r.id AS result_id, r.key, m.label AS model, json_extract(m.json, '$.dtype') AS dtype,
         s.benchmark, s.dataset, s.task, s.length, p.label AS protocol,
         d.name AS method, d.label, d.json AS params, r.budget, r.budget_entries,
         r.question_aware, s.sample_key AS sample, s.sample_index, r.status, r.reason,
         r.score, r.metric, r.stop_reason, q.prompt_tokens, r.new_tokens, r.draft_tokens,
         r.kept_min, r.kept_max, r.kept_mean, r.kept_total, r.cache_bytes,
         r.prefill_s, r.query_s, r.score_s, r.choose_s, r.draft_s, r.compact_s, r.decode_s,
         r.decode_steps, r.arms_in_batch, r.run_id, r.created,
         m.hash AS model_hash, p.hash AS protocol_hash, d.hash AS method_hash
  FROM results AS r
  JOIN prompts AS q ON q.id = r.prompt_id
  JOIN samples AS s ON s.id = q.sample_id
  JOIN models AS m ON m.id = q.model_id
  JOIN protocols AS p ON p.id = q.protocol_id
  JOIN methods AS d ON d.id = r.method_id;
CREATE VIEW scores AS
  SELECT c.key, c.model, c.dtype, c.benchmark, c.dataset, c.task, c.length, c.protocol, c.method,
         c.label, c.params, c.budget, c.budget_entries, c.question_aware, c.sample,
         c.sample_index, c.score, c.metric, y.reply, c.stop_reason, c.prompt_tokens,
         c.new_tokens, c.draft_tokens, c.kept_min, c.kept_max, c.kept_mean, c.kept_total,
         c.cache_bytes, c.run_id, c.created
  FROM cells AS c LEFT JOIN replies AS y ON y.result_id = c.result_id
  WHERE c.status = 'ok';
CREATE VIEW timings AS
  SELECT key, model, dtype, benchmark, task, length, method, label, budget, question_aware, sample,
         prompt_tokens, new_tokens, draft_tokens, prefill_s, query_s, score_s, choose_s, draft_s,
         compact_s, query_s + score_s + choose_s + draft_s + compact_s AS eviction_s,
         decode_s, decode_steps, arms_in_batch,
         CASE WHEN decode_steps > 0 THEN decode_s / decode_steps END AS decode_step_s,
         cache_bytes, run_id
  FROM cells WHERE status = 'ok';
CREATE VIEW failures AS
  SELECT key, model, benchmark, dataset, task, length, protocol, method, label, budget,
         question_aware, sample, status, reason, run_id, created
  FROM cells WHERE status <> 'ok';
PRAGMA application_id = 1802923106;
PRAGMA user_version = 1;
