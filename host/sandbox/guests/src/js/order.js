(function (text) {
  const order = JSON.parse(text);
  if (order.status === "cancelled") return null;
  const eur = Math.floor((Math.round(order.amount_usd * 100) * 92 + 50) / 100);
  const cents = String(eur % 100).padStart(2, "0");
  return JSON.stringify(order).slice(0, -1) + ',"amount_eur":' + Math.floor(eur / 100) + "." + cents + "}";
});
