-- The queries over three tables, person, auction and bid, that hold all events; n is an event's number. Both DuckDB and
-- SQLite take them, and must agree: whole numbers alone, times in milliseconds since 1970, no division that could be one
-- with a fraction. Where Nexmark's own words leave ties open, n decides. Columns in the order of the jobs' output.

-- q0: all bids
select auction, bidder, price, dateTime, extra from bid;

-- q1: prices in euros, here in thousandths of a cent
select auction, bidder, price * 908 as price, dateTime, extra from bid;

-- q2: bids on some auctions
select auction, price from bid where auction % 123 = 0;

-- q3: who sells in category 10 from three states
select p.name, p.city, p.state, a.id
from auction a join person p on a.seller = p.id
where a.category = 10 and p.state in ('OR', 'ID', 'CA');

-- q4: average of the closing prices of each category, cut to a whole number
select category, cast((sum(final) - sum(final) % count(*)) / count(*) as bigint) as price
from (
  select a.id, a.category, max(b.price) as final
  from auction a join bid b on a.id = b.auction and b.dateTime between a.dateTime and a.expires
  group by a.id, a.category
) closed
group by category;

-- q5: the auctions with the most bids of each 10 s, every 2 s; all that share the first place
with counts as (
  select auction, dateTime - dateTime % 2000 - k * 2000 as start, count(*) as num
  from bid cross join (select 0 as k union all select 1 union all select 2 union all select 3 union all select 4) slide
  group by auction, start
)
select c.auction, c.num, c.start
from counts c join (select start, max(num) as most from counts group by start) m on c.start = m.start and c.num = m.most;

-- q7: the highest bids of each 10 s; a bid on a boundary can be that of the window before, too
select b.auction, b.price, b.bidder, b.dateTime, b.extra
from bid b join (
  select dateTime - dateTime % 10000 + 10000 as till, max(price) as most from bid group by dateTime - dateTime % 10000 + 10000
) m on b.price = m.most and b.dateTime between m.till - 10000 and m.till;

-- q8: who came and sold within the same 10 s
select distinct p.id, p.name, p.dateTime - p.dateTime % 10000 as start
from person p join auction a on p.id = a.seller and p.dateTime - p.dateTime % 10000 = a.dateTime - a.dateTime % 10000;

-- q11: bids of each bidder's sessions, which end after 10 s without a bid
with gaps as (
  select bidder, n, dateTime,
    case when dateTime - lag(dateTime) over (partition by bidder order by dateTime, n) < 10000 then 0 else 1 end as fresh
  from bid
), sessions as (
  select bidder, dateTime, sum(fresh) over (partition by bidder order by dateTime, n rows unbounded preceding) as session from gaps
)
select bidder, count(*) as num, min(dateTime) as start, max(dateTime) + 10000 as till from sessions group by bidder, session;

-- q12: bids of each bidder by processing time: the job's windows hang on the clock, so only their sum is compared
select bidder, count(*) as num from bid group by bidder;

-- q14: prices in thousandths of a cent, the time of day (UTC), and how often c stands in extra
select auction, bidder, price * 908 as price,
  case when dateTime % 86400000 between 28800000 and 68399999 then 'dayTime'
    when dateTime % 86400000 < 25200000 or dateTime % 86400000 >= 72000000 then 'nightTime'
    else 'otherTime' end as bidTimeType,
  dateTime, extra, length(extra) - length(replace(extra, 'c', '')) as c_counts
from bid where price * 908 > 1000000000 and price * 908 < 50000000000;

-- q18: the last bid of each bidder on each auction
select auction, bidder, price, channel, url, dateTime, extra
from (select *, row_number() over (partition by bidder, auction order by dateTime desc, n desc) as place from bid) ranked
where place = 1;

-- q19: the ten highest bids on each auction
select auction, bidder, price, channel, url, dateTime, extra, place
from (select *, row_number() over (partition by auction order by price desc, n) as place from bid) ranked
where place <= 10;

-- q20: bids with their auctions, of category 10
select b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime, b.extra,
  a.itemName, a.description, a.initialBid, a.reserve, a.dateTime as auctionDateTime, a.expires, a.seller, a.category, a.extra as auctionExtra
from bid b join auction a on b.auction = a.id
where a.category = 10;
